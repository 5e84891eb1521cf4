//! Faults of the scenario that begin and end, and what is asked about those in force.

use std::time::Duration;

use super::{Event, SlotId, World, losses::Cause, ms};
use crate::{
    model::{GroupName, NodeState},
    sim::scenario::Fault,
};

impl World {
    /// The faults in force, with their places among the scenario's events.
    pub fn active_faults(&self) -> impl Iterator<Item = (usize, &Fault)> {
        self.active.iter().map(|index| (*index, &self.scenario.events[*index].fault))
    }

    /// The faults in force.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.active.iter().map(|index| &self.scenario.events[*index].fault)
    }

    pub(super) fn fault_begins(&mut self, index: usize) {
        let event = &self.scenario.events[index];
        let (fault, lasts) = (event.fault.clone(), ms(event.lasts));
        match fault {
            Fault::MachinesDie(count) => self.busiest(count).into_iter().for_each(|slot| self.dies(slot)),
            Fault::ClockStep(by_ms) => self.clock_offset_ms += by_ms,
            Fault::NodesUnhealthy(count) => {
                self.record_unhealthy(index, count);
                self.in_force(index, lasts);
            }
            Fault::ResourceManagerRestart => {
                self.rm.is_up = false;
                self.in_force(index, lasts);
            }
            Fault::ResourceManagerStale => {
                self.rm.frozen = Some(self.observation());
                self.in_force(index, lasts);
            }
            _ => self.in_force(index, lasts),
        }
    }

    fn in_force(&mut self, index: usize, lasts: u64) {
        self.active.insert(index);
        self.rm.shown = None;
        self.events.push(self.now + lasts, Event::FaultEnds(u32::try_from(index).unwrap_or(u32::MAX)));
    }

    pub(super) fn fault_ends(&mut self, index: usize) {
        self.active.remove(&index);
        self.rm.shown = None;
        match self.scenario.events[index].fault {
            Fault::ResourceManagerRestart if !self.is_in_force(&Fault::ResourceManagerRestart) => {
                self.rm.is_up = true;
                self.rm.started_on_ms = self.rm.epoch_ms + i64::try_from(self.now).unwrap_or(i64::MAX);
                self.nodes_register_anew();
            }
            Fault::ResourceManagerStale if !self.is_in_force(&Fault::ResourceManagerStale) => self.rm.frozen = None,
            Fault::NodesUnhealthy(_) => self.recover(index),
            _ => {}
        }
    }

    fn is_in_force(&self, fault: &Fault) -> bool {
        self.faults().any(|other| other == fault)
    }

    /// The nodes with most containers, the first ones among equals.
    fn busiest(&self, count: u32) -> Vec<SlotId> {
        let live = (0..self.slots.len()).filter(|index| {
            let entry = &self.slots[*index];
            entry.is_alive() && entry.own_node().is_some_and(|node| node.state == NodeState::Running)
        });
        let mut live: Vec<_> = live.collect();
        live.sort_by_key(|index| {
            std::cmp::Reverse(self.slots[*index].node.as_ref().map_or(0, |node| node.containers.len()))
        });
        live.into_iter().take(count as usize).filter_map(|index| SlotId::try_from(index).ok()).collect()
    }

    /// Nodes fail their health check: the scheduler drops them, and their containers with them.
    fn record_unhealthy(&mut self, index: usize, count: u32) {
        for slot in self.busiest(count) {
            self.rm.unhealthy.insert((index, slot));
            self.alter(slot, |node| {
                (node.state, node.health_report) = (NodeState::Unhealthy, "1/1 local-dirs are bad");
            });
            self.lose_all_of(slot, Cause::Fault);
        }
    }

    pub(super) fn is_unhealthy(&self, slot: SlotId) -> bool {
        self.rm.unhealthy.iter().any(|(_, other)| *other == slot)
    }

    fn recover(&mut self, index: usize) {
        let ours: Vec<_> = self.rm.unhealthy.iter().filter(|(of, _)| *of == index).copied().collect();
        for entry in ours {
            self.rm.unhealthy.remove(&entry);
            let slot = entry.1;
            if self.is_unhealthy(slot) {
                continue;
            }
            self.alter(slot, |node| {
                node.health_report = "";
                if node.state == NodeState::Unhealthy {
                    node.state = NodeState::Running;
                }
            });
            self.arm(slot);
        }
    }

    pub(super) fn boot_factor(&self) -> f64 {
        self.faults().fold(1.0, |factor, fault| if let Fault::SlowBoots(by) = fault { factor * by } else { factor })
    }

    /// Whether a machine that is ordered now comes without its GPUs, or never.
    pub(super) fn draw_failures(&mut self) -> (bool, bool) {
        let (mut without_gpus, mut never) = (0.0_f64, 0.0_f64);
        for fault in self.faults() {
            match fault {
                Fault::DriverFailure(share) => without_gpus = without_gpus.max(*share),
                Fault::BootFailure(share) => never = never.max(*share),
                _ => {}
            }
        }
        let has_gpus = self.first_worker().gpus > 0;
        (without_gpus > 0.0 && has_gpus && self.lives.happens(without_gpus), never > 0.0 && self.lives.happens(never))
    }

    pub(super) fn is_out_of_stock(&self, group: GroupName) -> bool {
        self.faults().any(|fault| *fault == Fault::StockOut(group))
    }

    /// Whether YARN answers nothing.
    pub fn yarn_is_silent(&self) -> bool {
        !self.rm.is_up || self.faults().any(|fault| *fault == Fault::ResourceManagerTimeout)
    }

    /// Whether orders are answered 429, and when to come back.
    pub fn throttled(&self) -> Option<Option<Duration>> {
        self.faults()
            .find_map(|fault| if let Fault::Throttled(retry_after) = fault { Some(*retry_after) } else { None })
    }
}
