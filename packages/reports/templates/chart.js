// A canvas over a span of time that can be zoomed and moved; the kinds of charts below build on it.
const WHEEL_STEP = 0.0015;
const BUTTON_STEP = 0.5;
const DRAG_THRESHOLD = 4;
export const AXIS_HEIGHT = 24;
const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif';
const COLORS = ['background', 'ink', 'muted', 'grid', ...[1, 2, 3, 4, 5, 6].map((n) => `series-${n}`)];

const tip = document.createElement('div');
tip.className = 'tooltip chart-tip';
tip.hidden = true;
document.body.append(tip);

export class Chart {
  /** Brings the chart in `figure` to life. */
  static attach(figure) {
    return new this(figure);
  }

  constructor(figure) {
    this.figure = figure;
    this.frame = figure.querySelector('.canvas');
    this.canvas = figure.querySelector('canvas');
    this.output = figure.querySelector('.tools output');
    this.data = JSON.parse(figure.querySelector('script.chart-data').textContent);
    this.whole = this.data.durationUs;
    this.view = [0, this.whole];
    // Closer than this, the clock's own steps would show.
    this.least = Math.min(this.whole, 0.05);
    this.left = 0;
    this.pointers = new Map();
    this.isWaiting = false;
  }

  /** Called by each kind when it is ready to draw. */
  start() {
    this.listenToPointers();
    this.listenToKeys();
    for (const button of this.figure.querySelectorAll('[data-zoom]')) {
      button.addEventListener('click', () => this.zoomBy(button.dataset.zoom));
    }
    new ResizeObserver(() => this.draw()).observe(this.frame);
    const redraw = () => this.requestDraw();
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ['data-theme'] });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
    // Paper is white, whatever the screen.
    addEventListener('beforeprint', () => this.draw('light'));
    addEventListener('afterprint', redraw);
    this.draw();
  }

  /** The horizontal place of a time, in pixels. */
  x(time) {
    const [from, to] = this.view;
    return this.left + ((time - from) / (to - from)) * (this.width - this.left);
  }

  timeAt(x) {
    const [from, to] = this.view;
    return from + ((x - this.left) / (this.width - this.left)) * (to - from);
  }

  show(from, to) {
    const length = Math.min(this.whole, Math.max(this.least, to - from));
    const start = Math.max(0, Math.min(from, this.whole - length));
    this.view = [start, start + length];
    tip.hidden = true;
    this.requestDraw();
  }

  zoom(factor, time = (this.view[0] + this.view[1]) / 2) {
    const [from, to] = this.view;
    const length = Math.min(this.whole, Math.max(this.least, (to - from) * factor));
    const start = time - ((time - from) / (to - from)) * length;
    this.show(start, start + length);
  }

  zoomBy(name) {
    if (name === 'all') this.show(0, this.whole);
    else this.zoom(name === 'in' ? BUTTON_STEP : 1 / BUTTON_STEP);
  }

  /** By a part of what is in view. */
  move(part) {
    const [from, to] = this.view;
    const shift = part * (to - from);
    this.show(from + shift, to + shift);
  }

  listenToKeys() {
    const actions = {
      '+': () => this.zoomBy('in'),
      '=': () => this.zoomBy('in'),
      '-': () => this.zoomBy('out'),
      0: () => this.zoomBy('all'),
      ArrowLeft: () => this.move(-0.2),
      ArrowRight: () => this.move(0.2),
    };
    this.frame.addEventListener('keydown', (event) => {
      const action = actions[event.key];
      if (!action || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      action();
    });
  }

  listenToPointers() {
    const { canvas } = this;
    canvas.addEventListener('wheel', (event) => this.turnWheel(event), { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      this.frame.focus({ preventScroll: true });
      this.pointers.set(event.pointerId, event);
      this.dragged = { view: this.view, from: [...this.pointers.values()], isFar: false };
    });
    canvas.addEventListener('pointermove', (event) => {
      if (!this.pointers.has(event.pointerId)) return this.point(event);
      this.pointers.set(event.pointerId, event);
      this.drag(event);
    });
    for (const end of ['pointerup', 'pointercancel']) {
      canvas.addEventListener(end, (event) => {
        this.pointers.delete(event.pointerId);
        if (!this.dragged?.isFar) this.point(event);
        this.dragged = { view: this.view, from: [...this.pointers.values()], isFar: false };
      });
    }
    canvas.addEventListener('pointerleave', () => (tip.hidden = true));
    canvas.addEventListener('dblclick', (event) => this.fill(event));
    addEventListener('scroll', () => (tip.hidden = true), { passive: true });
  }

  /** The page scrolls under a wheel until the chart was clicked, so that readers do not get caught in it. */
  turnWheel(event) {
    if (document.activeElement !== this.frame && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.move(event.deltaX / this.width);
    else this.zoom(Math.exp(event.deltaY * WHEEL_STEP), this.timeAt(event.offsetX));
  }

  /** One finger or the mouse moves the view; two fingers stretch it. */
  drag(event) {
    const { view, from } = this.dragged;
    const now = [...this.pointers.values()];
    if (!this.dragged.isFar) {
      if (Math.abs(event.clientX - from[0].clientX) < DRAG_THRESHOLD && now.length === 1) return;
      this.dragged.isFar = true;
      this.canvas.setPointerCapture(event.pointerId);
    }
    const scale = (view[1] - view[0]) / (this.width - this.left);
    const middle = (events) => events.reduce((sum, each) => sum + each.clientX, 0) / events.length;
    const gap = (events) =>
      events.length < 2 ? 1 : Math.max(20, Math.abs(events[0].clientX - events[1].clientX));
    const factor = gap(from) / gap(now);
    const side = this.canvas.getBoundingClientRect().left + this.left;
    const start = view[0] + (middle(from) - side) * scale - (middle(now) - side) * scale * factor;
    this.show(start, start + (view[1] - view[0]) * factor);
  }

  point(event) {
    const lines = this.describe(event.offsetX, event.offsetY);
    tip.hidden = lines === null;
    if (lines === null) return;
    const heading = document.createElement('strong');
    heading.textContent = lines[0];
    tip.replaceChildren(heading, ...lines.slice(1).flatMap((line) => [document.createElement('br'), line]));
    const most = document.documentElement.clientWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, most))}px`;
    const below = event.clientY + 16;
    const fits = below + tip.offsetHeight < innerHeight;
    tip.style.top = `${fits ? below : Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  }

  /** Fills the view with the part under the pointer. */
  fill(event) {
    const part = this.partAt(event.offsetX, event.offsetY);
    if (!part) return;
    const margin = 0.05 * part.duration;
    this.show(part.start - margin, part.start + part.duration + margin);
  }

  requestDraw() {
    if (this.isWaiting) return;
    this.isWaiting = true;
    requestAnimationFrame(() => {
      this.isWaiting = false;
      this.draw();
    });
  }

  draw(scheme = '') {
    this.width = this.frame.clientWidth;
    if (this.width === 0) return;
    const height = this.height();
    const ratio = scheme ? Math.max(2, devicePixelRatio) : devicePixelRatio;
    this.canvas.style.height = `${height}px`;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const context = this.canvas.getContext('2d');
    context.scale(ratio, ratio);
    context.font = FONT;
    this.colors = this.readColors(scheme);
    this.paint(context, height);
    const [from, to] = this.view;
    this.figure.dataset.view = `${from} ${to}`;
    this.say(
      from === 0 && to === this.whole
        ? `${timeText(this.whole)} in all`
        : `${timeText(from, to - from)} to ${timeText(to, to - from)} of ${timeText(this.whole)}`,
    );
  }

  say(message) {
    this.output.textContent = message;
  }

  /** A canvas takes colours as they are, not variables; `light-dark()` is resolved by an element of the page. */
  readColors(scheme) {
    const probe = document.createElement('i');
    probe.style.colorScheme = scheme;
    this.frame.append(probe);
    const entries = COLORS.map((name) => {
      probe.style.color = `var(--${name})`;
      return [name, getComputedStyle(probe).color];
    });
    probe.remove();
    return Object.fromEntries(entries);
  }

  /** The times above, and their lines through the chart. */
  paintTimes(context, height) {
    const [from, to] = this.view;
    const step = roundStep(((to - from) * 110) / (this.width - this.left));
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const x = Math.round(this.x(time)) + 0.5;
      context.fillStyle = this.colors.grid;
      context.fillRect(x, 0, 1, height);
      const text = timeText(time, to - from, step);
      if (x + 4 + context.measureText(text).width > this.width) continue;
      context.fillStyle = this.colors.muted;
      context.fillText(text, x + 4, AXIS_HEIGHT / 2);
    }
  }
}

/** 1, 2 or 5 times a power of ten, at least `length`. */
function roundStep(length) {
  const power = 10 ** Math.floor(Math.log10(length));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= length * (1 - 1e-9));
}

/** A time in the unit that suits `span`, with the digits that `step` needs. */
export function timeText(time, span = time, step = span / 1000) {
  const [unit, size] =
    span >= 2e6 ? ['s', 1e6] : span >= 2e3 ? ['ms', 1e3] : span >= 2 || time === 0 ? ['µs', 1] : ['ns', 1e-3];
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / size) + 1e-9)));
  return `${(time / size).toFixed(time === 0 ? 0 : digits)} ${unit}`;
}

export function bytesText(bytes) {
  const power = bytes < 1 ? 0 : Math.min(4, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** power;
  const digits = power === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(value)));
  return `${value.toFixed(digits)} ${['B', 'KiB', 'MiB', 'GiB', 'TiB'][power]}`;
}

/** The first index whose value is above `limit`, in a sorted list. */
export function firstAbove(values, limit) {
  let [low, high] = [0, values.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** `text`, cut to fit `width`; empty where not even a few letters fit. */
export function fittedText(context, text, width) {
  if (width < 24) return '';
  if (context.measureText(text).width <= width) return text;
  let [low, high] = [0, text.length];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low < 2 ? '' : `${text.slice(0, low)}…`;
}
