// Looks at the page in the frame and writes down what it finds; a test reads it from the document.
addEventListener('load', () => {
  const frame = document.getElementById('page'), page = frame.contentDocument, view = frame.contentWindow;
  const root = page.documentElement;
  root.dataset.theme = frame.dataset.theme;
  for (const details of page.querySelectorAll('details')) details.open = true;
  const count = selector => page.querySelectorAll(selector).length;
  const width = root.clientWidth;
  const name = element => element.tagName + '.' + (element.getAttribute('class') || '') + ': ' + element.textContent.trim().slice(0, 60);
  const rgb = text => (text.match(/[\d.]+/g) || []).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(c => (c /= 255) <= .03928 ? c / 12.92 : ((c + .055) / 1.055) ** 2.4);
    return .2126 * x + .7152 * y + .0722 * z;
  };
  const behind = element => {
    for (; element; element = element.parentElement) {
      const color = rgb(view.getComputedStyle(element).backgroundColor);
      if (color.length === 3 || color[3] > 0) return color;
    }
    return [255, 255, 255];
  };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + .05) / (y + .05); };
  const beyond = [], clipped = [], pale = [];
  for (const element of page.querySelectorAll('body *')) {
    const box = element.getBoundingClientRect(), style = view.getComputedStyle(element);
    const isShown = box.width > 0 && box.height > 0 && style.visibility !== 'hidden';
    if (!isShown || element.closest('.wide, .hidden, #tip')) continue;
    if ((box.right > width + 1 || box.left < -1) && !element.closest('.mark') && element.tagName !== 'path') beyond.push(name(element));
    const isText = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!isText) continue;
    if (box.height > 4 * box.width && element.textContent.trim().length > 3) clipped.push('squeezed ' + name(element));
    const inSvg = element.namespaceURI.includes('svg');
    const onRect = element.closest('.part') && element.closest('.part').querySelector('rect');
    const onDot = element.closest('.dot') && element.closest('.dot').querySelector('.full');
    const color = rgb(inSvg ? style.fill : style.color);
    const ground = onRect || onDot ? rgb(view.getComputedStyle(onRect || onDot).fill) : behind(element);
    if (contrast(color, ground) < 4.5) pale.push(contrast(color, ground).toFixed(2) + ' ' + name(element));
    if (inSvg && !onDot && onRect && box.width > onRect.getBoundingClientRect().width) clipped.push(name(element));
  }
  // Labels of one picture must not cover each other.
  for (const plot of page.querySelectorAll('svg.plot')) {
    const labels = [...plot.querySelectorAll('text.tick')].map(text => [text, text.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    labels.forEach(([text, a], index) => labels.slice(index + 1).forEach(([other, b]) => {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left), high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) clipped.push(text.textContent + ' over ' + other.textContent);
    }));
  }
  const plot = page.querySelector('.cluster .plot');
  let tip = '';
  if (plot) {
    plot.scrollIntoView();
    const box = plot.getBoundingClientRect();
    plot.dispatchEvent(new view.PointerEvent('pointermove', { bubbles: true, clientX: box.left + box.width / 2, clientY: box.top + 20 }));
    tip = page.getElementById('tip').textContent;
  }
  const ready = page.querySelector('.cluster .line.ready');
  // The topmost place of the line of all machines, read back in workers by the labelled grid.
  const heights = path => (path.getAttribute('d').match(/(?:M[\d.]+ |V)[\d.]+/g) || []).map(part => Number(part.replace(/^M[\d.]+ |^V/, '')));
  const total = page.querySelector('.cluster .line.total');
  const labels = [...page.querySelectorAll('.cluster .plot')].slice(0, 1).flatMap(chart => [...chart.querySelectorAll('text.tick[x="3"]')]);
  let highestMachines = null;
  if (total && labels.length) {
    const height = Number(plot.dataset.height), label = labels[labels.length - 1];
    const perPixel = Number(label.textContent) / (height - (Number(label.getAttribute('y')) - 12));
    highestMachines = Math.round((height - Math.min(...heights(total))) * perPixel);
  }
  const points = Math.max(0, ...[...page.querySelectorAll('.cluster path.area, .cluster path.line')].map(path => heights(path).length * 2));
  const all = selector => [...page.querySelectorAll(selector)];
  const found = {
    errors: root.dataset.errors || '', scrollWidth: root.scrollWidth, clientWidth: width,
    beyond: beyond.slice(0, 8), clipped: clipped.slice(0, 8), pale: pale.slice(0, 8),
    fetched: view.performance.getEntriesByType('resource').filter(entry => !entry.name.startsWith('data:')).length,
    decisionsMarked: all('.mark').reduce((sum, mark) => sum + Number(mark.dataset.decisions), 0),
    decisionRows: count('.decisions tbody tr'), orderRows: count('.decisions tbody tr.order'),
    jobs: count('.job'), charts: count('.cluster .plot'), bars: count('.money .plot'), curves: count('.curve'),
    dots: count('.dot'), stars: count('.star'), reasonRows: count('.reasons tbody'),
    figureRows: count('.figures tbody tr:not(.group)'), figureColumns: count('.figures thead th'),
    tables: count('table'), tablesWithHeaders: all('table').filter(table => table.querySelector('thead th[scope=col]')).length,
    images: count('svg.plot'), namedImages: count('svg.plot[role=img][aria-label]'),
    readySteps: ready ? (ready.getAttribute('d').match(/V/g) || []).length : 0,
    scripts: count('script'), points, highestMachines, troubles: count('.trouble li'), tip,
  };
  document.getElementById('found').textContent = JSON.stringify(found);
});
