// Memory over time: each allocation a band, in the order of allocation; what is freed lets those above it down.
import { AXIS_HEIGHT, Chart, bytesText, firstAbove, timeText } from './chart.js';

const PLOT = 320;
const Y_AXIS = 72;
/** The height of the plot over the highest level. */
const HEADROOM = 1.04;
const HIDDEN_COLOR = 'muted';
/** The colour of what has no category, next to others that have one. */
const PLAIN_COLOR = 'grid';
/** Allocations that are drawn one by one until the slider asks for others. */
const FIRST_DETAIL = 500;
const MOST_LINES_OF_STACK = 8;

class AllocationsChart extends Chart {
  constructor(figure) {
    super(figure);
    const { bytes, starts, ends, reserved } = this.data;
    this.left = Y_AXIS;
    this.bySize = bytes.map((_, index) => index).sort((a, b) => bytes[b] - bytes[a]);
    this.events = bytes.flatMap((size, index) => {
      if (ends[index] === null) return [{ time: starts[index], index, change: size }];
      if (ends[index] === starts[index]) return [];
      return [
        { time: starts[index], index, change: size },
        { time: ends[index], index, change: -size },
      ];
    });
    this.events.sort((a, b) => a.time - b.time || a.change - b.change);
    this.most = reserved.bytes.reduce((most, each) => Math.max(most, each), this.data.peakBytes) || 1;
    this.slider = figure.querySelector('input[type=range]');
    this.slider.value = this.sliderOf(Math.min(FIRST_DETAIL, bytes.length));
    this.slider.addEventListener('input', () => {
      this.measureDetail();
      this.requestDraw();
    });
    this.measureDetail();
    this.start();
  }

  height() {
    return AXIS_HEIGHT + PLOT + 4;
  }

  /** The slider is logarithmic: from none to all. */
  sliderOf(count) {
    return Math.round((1000 * Math.log1p(count)) / Math.log1p(this.data.bytes.length || 1));
  }

  measureDetail() {
    const { bytes } = this.data;
    const part = Number(this.slider.value) / 1000;
    const count = Math.min(bytes.length, Math.round(Math.expm1(part * Math.log1p(bytes.length))));
    this.shown = new Uint8Array(bytes.length);
    for (const index of this.bySize.slice(0, count)) this.shown[index] = 1;
    let [held, most] = [0, 0];
    for (const { index, change } of this.events) {
      if (this.shown[index]) continue;
      held += change;
      most = Math.max(most, held);
    }
    this.hidden = { count: bytes.length - count, largest: bytes[this.bySize[count]] ?? 0, most };
  }

  say(message) {
    const { count, largest, most } = this.hidden;
    const share = ((100 * most) / (this.data.peakBytes || 1)).toFixed(1);
    const hidden =
      count === 0
        ? `All ${this.data.bytes.length.toLocaleString('en')} allocations drawn`
        : `${count.toLocaleString('en')} smallest in one grey band: each at most ${bytesText(largest)}, ` +
          `together at most ${bytesText(most)}, ${share} % of the peak`;
    super.say(`${hidden}; ${message}`);
  }

  y(bytes) {
    return AXIS_HEIGHT + PLOT * (1 - bytes / (this.most * HEADROOM));
  }

  paint(context, height) {
    this.paintTimes(context, height);
    this.paintBytes(context);
    this.moments = this.fullestMoments();
    for (const { color, isLight, base, bytes, left, right } of this.stackColumns()) {
      context.fillStyle = this.colors[color];
      context.globalAlpha = isLight ? (color === HIDDEN_COLOR ? 0.45 : 0.82) : 1;
      const top = this.y(base + bytes);
      const bottom = this.y(base);
      // A hairline parts the bands that are high enough to show one.
      const gap = bottom - top > 3 ? 0.75 : 0;
      context.fillRect(left, top + gap, right - left, bottom - top - gap);
    }
    context.globalAlpha = 1;
    this.paintReserved(context);
  }

  paintBytes(context) {
    const least = (this.most * HEADROOM * 36) / PLOT;
    const step = 2 ** Math.ceil(Math.log2(least));
    context.textAlign = 'right';
    context.textBaseline = 'middle';
    for (let bytes = 0; bytes <= this.most * HEADROOM; bytes += step) {
      const y = Math.round(this.y(bytes)) + 0.5;
      context.fillStyle = this.colors.grid;
      context.fillRect(this.left, y, this.width - this.left, 1);
      context.fillStyle = this.colors.muted;
      context.fillText(bytesText(bytes), this.left - 8, Math.min(y, AXIS_HEIGHT + PLOT - 6));
    }
  }

  /** The bands of all columns of pixels, each column as it was at its fullest moment. */
  stackColumns() {
    const bands = [];
    let open = new Map();
    const state = { live: [], hidden: 0, done: 0 };
    this.moments.forEach((moment, column) => {
      this.advance(state, moment);
      open = this.stack(state, this.left + column, open, bands);
    });
    return bands;
  }

  /** Brings what is live, and the bytes of what is hidden, to the moment after as many events. */
  advance(state, moment) {
    for (; state.done < moment; state.done += 1) {
      const { index, change } = this.events[state.done];
      if (!this.shown[index]) state.hidden += change;
      else if (change > 0) state.live.push(index);
      else state.live.splice(state.live.indexOf(index), 1);
    }
  }

  /** How many events have passed at the fullest moment of each column. */
  fullestMoments() {
    const columns = Math.max(1, Math.floor(this.width - this.left));
    const moments = [];
    let [done, held] = [0, 0];
    for (let column = 0; column < columns; column += 1) {
      const start = this.timeAt(this.left + column);
      const end = column === columns - 1 ? Infinity : this.timeAt(this.left + column + 1);
      while (this.events[done]?.time <= start) held += this.events[done++].change;
      let [moment, most] = [done, held];
      while (this.events[done]?.time < end && this.events[done].time <= this.view[1]) {
        held += this.events[done++].change;
        if (held > most) [moment, most] = [done, held];
      }
      moments.push(moment);
    }
    return moments;
  }

  /**
   * Adds one column; a band that is where it was in the column before grows instead. Neighbours of one colour that are
   * lower than two pixels are drawn as one. Gives the bands that can grow, by their base.
   */
  stack({ live, hidden }, left, open, bands) {
    const next = new Map();
    const add = (color, isLight, base, bytes) => {
      const before = open.get(base);
      const isSame = before?.bytes === bytes && before.color === color && before.isLight === isLight;
      const band = isSame ? before : { color, isLight, base, bytes, left };
      if (!isSame) bands.push(band);
      band.right = left + 1;
      next.set(base, band);
    };
    if (hidden > 0) add(HIDDEN_COLOR, true, 0, hidden);
    const least = (2 * this.most * HEADROOM) / PLOT;
    let [base, start] = [hidden, hidden];
    live.forEach((index, place) => {
      base += this.data.bytes[index];
      const color = this.data.colors[index];
      const isLast = place === live.length - 1 || this.data.colors[live[place + 1]] !== color;
      if (base - start < least && !isLast) return;
      add(color === 0 ? PLAIN_COLOR : `series-${color}`, index % 2 === 1, start, base - start);
      start = base;
    });
    return next;
  }

  paintReserved(context) {
    const { times, bytes } = this.data.reserved;
    if (times.length === 0) return;
    const first = Math.max(0, firstAbove(times, this.view[0]) - 1);
    context.save();
    context.beginPath();
    context.rect(this.left, 0, this.width - this.left, AXIS_HEIGHT + PLOT);
    context.clip();
    context.beginPath();
    context.moveTo(this.x(times[first]), this.y(bytes[first]));
    for (let index = first + 1; index < times.length && times[index] <= this.view[1]; index += 1) {
      context.lineTo(this.x(times[index]), this.y(bytes[index - 1]));
      context.lineTo(this.x(times[index]), this.y(bytes[index]));
    }
    const last = Math.max(first, firstAbove(times, this.view[1]) - 1);
    context.lineTo(this.width, this.y(bytes[last]));
    context.strokeStyle = this.colors.ink;
    context.setLineDash([5, 3]);
    context.lineWidth = 1.25;
    context.stroke();
    context.fillStyle = this.colors.ink;
    context.textAlign = 'right';
    context.textBaseline = 'bottom';
    context.fillText('reserved', this.width - 4, this.y(bytes[last]) - 2);
    context.restore();
  }

  /** The allocation that is drawn there, or -1 in the band of those that are hidden; null outside all. */
  indexAt(x, y) {
    const moment = this.moments[Math.floor(x - this.left)];
    if (moment === undefined) return null;
    const state = { live: [], hidden: 0, done: 0 };
    this.advance(state, moment);
    let base = state.hidden;
    if (y > this.y(0)) return null;
    if (y > this.y(base)) return -1;
    for (const index of state.live) {
      base += this.data.bytes[index];
      if (y >= this.y(base)) return index;
    }
    return null;
  }

  partAt(x, y) {
    const index = this.indexAt(x, y);
    if (index === null || index === -1) return null;
    const start = this.data.starts[index];
    return { start, duration: (this.data.ends[index] ?? this.whole) - start };
  }

  describe(x, y) {
    const index = this.indexAt(x, y);
    if (index === null) return null;
    if (index === -1) return [`${this.hidden.count.toLocaleString('en')} smallest`, 'drawn as one band'];
    const { names, bytes, labels, categories, starts, ends, stackIndices, stacks } = this.data;
    const category = categories[index] === -1 ? '' : `, ${names[categories[index]]}`;
    const until = ends[index] === null ? 'the end' : timeText(ends[index], this.whole);
    const stack = stackIndices[index] === -1 ? [] : stacks[stackIndices[index]].split('\n');
    return [
      names[labels[index]],
      `${bytesText(bytes[index])}${category}`,
      `from ${timeText(starts[index], this.whole)} to ${until}`,
      ...stack.slice(0, MOST_LINES_OF_STACK),
    ];
  }
}

for (const figure of document.querySelectorAll('figure.allocations')) AllocationsChart.attach(figure);
