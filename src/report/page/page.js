'use strict';
// Errors are left where a test finds them.
addEventListener('error', e => { document.documentElement.dataset.errors = (document.documentElement.dataset.errors || '') + e.message + '\n'; });
(() => {
  const root = document.documentElement, tip = document.getElementById('tip');
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8));
    const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = `translate(${left}px,${Math.max(8, top)}px)`;
  };
  const hide = () => { tip.hidden = true; };

  // The browser's own tooltips are slow and cut long texts: titles become ours, and stay names for readers aloud.
  for (const title of document.querySelectorAll('svg title')) {
    const owner = title.parentNode;
    owner.dataset.tip = title.textContent;
    owner.setAttribute('aria-label', title.textContent);
    title.remove();
  }
  const tipped = event => event.target.closest && event.target.closest('[data-tip]');
  addEventListener('pointermove', event => { const owner = tipped(event); if (owner) show(owner.dataset.tip, event.clientX, event.clientY); });
  addEventListener('pointerover', event => { if (!tipped(event) && !(event.target.closest && event.target.closest('.cluster'))) hide(); });
  addEventListener('scroll', hide, { passive: true });

  // Under the pointer, what a chart shows at that instant.
  for (const figure of document.querySelectorAll('figure.cluster')) {
    const plot = figure.querySelector('.plot'), cursor = figure.querySelector('.cursor');
    const data = JSON.parse(figure.querySelector('.readings').textContent);
    const height = Number(plot.dataset.height);
    const read = event => {
      const box = plot.getBoundingClientRect(), part = (event.clientX - box.left) / box.width;
      if (tipped(event) || part < 0 || part > 1 || event.clientY - box.top > height) { cursor.style.visibility = 'hidden'; if (!tipped(event)) hide(); return; }
      const seconds = part * data.length;
      let low = 0, high = data.rows.length - 1;
      while (low < high) { const middle = (low + high + 1) >> 1; if (data.rows[middle][0] <= seconds) low = middle; else high = middle - 1; }
      const at = new Date((data.start + seconds) * 1000).toISOString().replace('T', ' ').slice(0, 16);
      const lines = data.names.map((name, index) => [name, data.rows[low] ? data.rows[low][index + 1] : 0]).filter(([, value], index) => value > 0 || index === 0);
      cursor.setAttribute('x1', part * 100 + '%'); cursor.setAttribute('x2', part * 100 + '%');
      cursor.style.visibility = 'visible';
      show(at + ' UTC\n' + lines.map(([name, value]) => name + ': ' + value).join('\n'), event.clientX, event.clientY);
    };
    figure.addEventListener('pointermove', read);
    figure.addEventListener('pointerleave', () => { cursor.style.visibility = 'hidden'; hide(); });
  }

  // Light, dark, or as the system has it.
  const button = document.createElement('button'), themes = ['auto', 'light', 'dark'];
  let theme = Math.max(0, themes.indexOf(root.dataset.theme));
  button.className = 'theme';
  button.type = 'button';
  const apply = () => {
    if (theme) root.dataset.theme = themes[theme]; else delete root.dataset.theme;
    button.textContent = 'theme: ' + themes[theme];
  };
  button.addEventListener('click', () => { theme = (theme + 1) % themes.length; apply(); });
  apply();
  document.querySelector('.masthead').append(button);
})();
