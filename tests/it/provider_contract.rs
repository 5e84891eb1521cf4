//! What every provider promises, held against each of them: the controller knows none of them by name.

mod promises;
mod scene;
mod scenes;

/// A test for each promise, over one scene.
macro_rules! promised {
    ($name:ident, $scene:ty) => {
        mod $name {
            use super::{promises, scenes};

            #[tokio::test]
            async fn shows_what_is_there() {
                promises::shows_what_is_there::<$scene>().await;
            }

            #[tokio::test]
            async fn makes_what_is_ordered() {
                promises::makes_what_is_ordered::<$scene>().await;
            }

            #[tokio::test]
            async fn takes_an_order_once() {
                promises::takes_an_order_once::<$scene>().await;
            }

            #[tokio::test]
            async fn deletes_exactly_the_named() {
                promises::deletes_exactly_the_named::<$scene>().await;
            }

            #[tokio::test]
            async fn knows_its_operations() {
                promises::knows_its_operations::<$scene>().await;
            }

            #[tokio::test]
            async fn tells_failures_by_their_kinds() {
                promises::tells_failures_by_their_kinds::<$scene>().await;
            }

            #[tokio::test]
            async fn goes_on_after_failures() {
                promises::goes_on_after_failures::<$scene>().await;
            }

            #[tokio::test]
            async fn survives_a_lost_answer() {
                promises::survives_a_lost_answer::<$scene>().await;
            }

            #[tokio::test]
            async fn never_hangs() {
                promises::never_hangs::<$scene>().await;
            }

            #[tokio::test]
            async fn overlaps_as_it_says() {
                promises::overlaps_as_it_says::<$scene>().await;
            }
        }
    };
}

promised!(command, scenes::Scripted<false>);
promised!(command_that_overlaps, scenes::Scripted<true>);
promised!(simulator, scenes::Simulated<false>);
promised!(simulator_that_overlaps, scenes::Simulated<true>);
promised!(dataproc, scenes::Dataproc);
