// Runs in a browser: what is wrong with a page as it is drawn, in sentences. Needs `page` (its document), `width` (CSS pixels)
// and `names` (those that no heading may hold), and gives a list.

/** Pixels that rectangles may share: glyphs do not fill theirs. */
const SHARED = 1.5;

function auditPage(page, width, names) {
  const shown = [...page.querySelectorAll('svg[role="img"]')].filter(
    (svg) => svg.getBoundingClientRect().width > 0,
  );
  const { scrollWidth } = page.documentElement;
  return [
    ...(scrollWidth > width ? [`scrolls sideways: ${scrollWidth} of ${width} pixels`] : []),
    ...auditHeadings(page, names),
    ...shown.flatMap(auditChart),
  ];
}

/** Headings and entries of the navigation that say how something was measured, or are too long to be names. */
function auditHeadings(page, names) {
  const texts = (selector) => [...page.querySelectorAll(selector)].map(ownText);
  const all = [...texts('h1, h2, h3'), ...texts('nav a')];
  const long = [...texts('section > h2, section > h3, summary > h2'), ...texts('nav a')];
  return [
    ...all
      .filter((text) => names.some((name) => new RegExp(name).test(text)))
      .map((text) => `a heading holds a setting: ${text}`),
    ...long.filter((text) => text.length > 30).map((text) => `a name of ${text.length} characters: ${text}`),
  ];
}

/** Without the mark that links to it. */
function ownText(element) {
  const copy = element.cloneNode(true);
  for (const anchor of copy.querySelectorAll('.anchor')) anchor.remove();
  return copy.textContent.trim();
}

/** Texts that cover one another, leave their chart, or are turned. */
function auditChart(svg) {
  const name = svg.closest('figure')?.id ?? svg.getAttribute('aria-label');
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')]
    .map((text) => ({
      text: text.textContent,
      box: text.getBoundingClientRect(),
      turn: text.getScreenCTM().b,
    }))
    .filter(({ text }) => text.trim() !== '');
  const covers = (a, b) =>
    a.left + SHARED < b.right &&
    b.left + SHARED < a.right &&
    a.top + SHARED < b.bottom &&
    b.top + SHARED < a.bottom;
  return [
    ...texts.filter(({ turn }) => Math.abs(turn) > 1e-3).map(({ text }) => `${name}: '${text}' is turned`),
    ...texts
      .filter(
        ({ box }) =>
          box.left < frame.left - SHARED ||
          box.right > frame.right + SHARED ||
          box.top < frame.top - SHARED ||
          box.bottom > frame.bottom + SHARED,
      )
      .map(({ text }) => `${name}: '${text}' leaves the chart`),
    ...texts.flatMap((a, index) =>
      texts
        .slice(index + 1)
        .filter((b) => covers(a.box, b.box))
        .map((b) => `${name}: '${a.text}' and '${b.text}' overlap`),
    ),
  ];
}

/** Texts with less contrast than WCAG's level AA asks for: 4.5, of large ones 3. */
function auditContrast(page) {
  const found = new Map();
  const grounds = new Map();
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.data.trim() === '' || ['SCRIPT', 'STYLE', 'TITLE', 'title'].includes(element.tagName)) continue;
    if (!element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    const style = page.defaultView.getComputedStyle(element);
    const ink = colorOf(element instanceof page.defaultView.SVGElement ? style.fill : style.color);
    const ratio = contrast(ink, groundOf(element, page, grounds));
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (ratio < (isLarge ? 3 : 4.5)) {
      const key = `${style.color} ${element.tagName}.${element.className?.baseVal ?? element.className}`;
      if (!found.has(key))
        found.set(key, `contrast ${ratio.toFixed(2)}: '${node.data.trim().slice(0, 40)}' (${key})`);
    }
  }
  return [...found.values()];
}

const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });

const colors = new Map();

/** Red, green, blue and opacity, from 0 to 255. Reading a canvas takes long, and pages have few colors. */
function colorOf(css) {
  if (!colors.has(css)) colors.set(css, drawnColor(css));
  return colors.get(css);
}

function drawnColor(css) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = css;
  canvas.fillRect(0, 0, 1, 1);
  return [...canvas.getImageData(0, 0, 1, 1).data];
}

function groundOf(element, page, grounds) {
  if (element === null) return [255, 255, 255, 255];
  if (!grounds.has(element)) {
    const color = colorOf(page.defaultView.getComputedStyle(element).backgroundColor);
    grounds.set(element, color[3] === 255 ? color : groundOf(element.parentElement, page, grounds));
  }
  return grounds.get(element);
}

function contrast(a, b) {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

function luminance([red, green, blue]) {
  const linear = [red, green, blue].map((value) => {
    const part = value / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

/** What is wrong with a page at each width, light and dark. */
// oxlint-disable-next-line no-unused-vars -- the test calls it
async function auditPages(html, widths, names) {
  const faults = [];
  for (const width of widths) {
    const frame = document.createElement('iframe');
    frame.style.cssText = `border:0;width:${width}px;height:1000px`;
    const loaded = new Promise((done) => frame.addEventListener('load', done));
    frame.srcdoc = html;
    document.body.append(frame);
    await loaded;
    await new Promise((done) => setTimeout(done, 50));
    const page = frame.contentDocument;
    faults.push(...auditPage(page, width, names).map((fault) => `${width}: ${fault}`));
    for (const theme of ['light', 'dark']) {
      page.documentElement.dataset.theme = theme;
      faults.push(...auditContrast(page).map((fault) => `${width} ${theme}: ${fault}`));
    }
    frame.remove();
  }
  return faults;
}
