// The tooltip of plots: the point under the pointer, or the nearest one.
const REACH = 36;
const tooltip = document.createElement('div');
tooltip.className = 'tooltip';
tooltip.hidden = true;
tooltip.setAttribute('role', 'status');
document.body.append(tooltip);

function nearest(marks, { clientX, clientY }) {
  let found = null;
  let least = REACH;
  for (const mark of marks) {
    const box = mark.getBoundingClientRect();
    const distance = Math.hypot(clientX - (box.left + box.right) / 2, clientY - (box.top + box.bottom) / 2);
    if (distance < least) [found, least] = [mark, distance];
  }
  return found;
}

function show(mark) {
  const [series, ...lines] = mark.dataset.tip.split('\n');
  const heading = document.createElement('strong');
  heading.textContent = series;
  tooltip.replaceChildren(heading, ...lines.flatMap((line) => [document.createElement('br'), line]));
  tooltip.hidden = false;
  const box = mark.getBoundingClientRect();
  const left = (box.left + box.right) / 2 - tooltip.offsetWidth / 2;
  const above = box.top - tooltip.offsetHeight - 8;
  tooltip.style.left = `${Math.max(4, Math.min(left, document.documentElement.clientWidth - tooltip.offsetWidth - 4))}px`;
  tooltip.style.top = `${above > 4 ? above : box.bottom + 8}px`;
}

for (const svg of document.querySelectorAll('figure.plot svg')) {
  // The browser's own tooltip, which the titles give without this script, would cover ours.
  for (const title of svg.querySelectorAll('title')) {
    title.parentElement.dataset.tip = title.textContent;
    title.remove();
  }
  const marks = [...svg.querySelectorAll('[data-tip]')];
  let current = null;
  const follow = (event) => {
    const mark = event.target.closest('[data-tip]') ?? nearest(marks, event);
    if (mark === current) return;
    current?.classList.remove('pointed');
    current = mark;
    current?.classList.add('pointed');
    if (current) show(current);
    else tooltip.hidden = true;
  };
  const leave = () => {
    current?.classList.remove('pointed');
    current = null;
    tooltip.hidden = true;
  };
  svg.addEventListener('pointermove', follow);
  svg.addEventListener('pointerdown', follow);
  svg.addEventListener('pointerleave', leave);
  addEventListener('scroll', leave, { passive: true });
}
