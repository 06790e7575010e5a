// Timelines: tracks of slices in lines, as flames hang, and counters below.
import { AXIS_HEIGHT, Chart, bytesText, firstAbove, fittedText, timeText } from './chart.js';

const LINE = 20;
const LABEL = 20;
const GAP = 12;
const COUNTER = 56;

class TimelineChart extends Chart {
  constructor(figure) {
    super(figure);
    this.term = '';
    this.matching = null;
    let top = AXIS_HEIGHT;
    this.lines = this.data.tracks.flatMap(({ name, rows }) => {
      const label = { name, top };
      top += LABEL;
      const lines = rows.map((row, index) => ({
        ...row,
        track: name,
        top: top + index * LINE,
        label: index === 0 ? label : null,
      }));
      top += rows.length * LINE + GAP;
      return lines;
    });
    this.counters = this.data.counters.map((counter) => {
      const placed = {
        ...counter,
        top,
        most: counter.values.reduce((most, value) => Math.max(most, value), 0),
      };
      top += LABEL + COUNTER + GAP;
      return placed;
    });
    this.bottom = top;
    figure.querySelector('input[type=search]').addEventListener('input', (event) => {
      this.find(event.target.value.trim().toLowerCase());
    });
    this.start();
  }

  height() {
    return this.bottom;
  }

  find(term) {
    this.term = term;
    this.matching = term === '' ? null : this.data.names.map((name) => name.toLowerCase().includes(term));
    this.requestDraw();
  }

  paint(context, height) {
    this.paintTimes(context, height);
    for (const line of this.lines) {
      if (line.label) this.paintLabel(context, line.label.name, line.label.top);
      this.paintLine(context, line);
    }
    for (const counter of this.counters) this.paintCounter(context, counter);
  }

  paintLabel(context, text, top) {
    context.fillStyle = this.colors.ink;
    context.textAlign = 'left';
    context.textBaseline = 'middle';
    const fitted = fittedText(context, text, this.width - 8);
    // Keeps the grid's lines from crossing the words.
    context.fillStyle = this.colors.background;
    context.fillRect(0, top, context.measureText(fitted).width + 8, LABEL);
    context.fillStyle = this.colors.ink;
    context.fillText(fitted, 4, top + LABEL / 2);
  }

  paintLine(context, line) {
    const { starts, durations, names, colors, top } = line;
    const [from, to] = this.view;
    let covered = -Infinity;
    for (let index = this.firstIn(line, from); index < starts.length && starts[index] <= to; index += 1) {
      const left = Math.max(-1, this.x(starts[index]));
      const right = Math.min(this.width + 1, this.x(starts[index] + durations[index]));
      // Many slices within one pixel are drawn as one.
      if (right < covered + 0.5) continue;
      const width = Math.max(0.75, right - left - (right - left > 3 ? 1 : 0));
      covered = left + width;
      context.globalAlpha = this.matching && !this.matching[names[index]] ? 0.15 : 1;
      const isPlain = colors[index] === 0;
      context.fillStyle = this.colors[isPlain ? 'grid' : `series-${colors[index]}`];
      context.fillRect(left, top, width, LINE - 2);
      context.fillStyle = this.colors[isPlain ? 'ink' : 'background'];
      this.paintName(context, this.data.names[names[index]], left, width, top);
    }
    context.globalAlpha = 1;
  }

  paintName(context, name, left, width, top) {
    const start = Math.max(0, left) + 4;
    const text = fittedText(context, name, left + width - start - 4);
    if (text === '') return;
    context.fillText(text, start, top + LINE / 2 - 0.5);
  }

  /** The first slice that can be seen at `time`: the last one that has begun, or the one after. */
  firstIn({ starts }, time) {
    return Math.max(0, firstAbove(starts, time) - 1);
  }

  paintCounter(context, { name, unit, times, values, top, most }) {
    this.paintLabel(context, `${name}, up to ${valueText(most, unit)}`, top);
    if (times.length === 0 || most === 0) return;
    const base = top + LABEL + COUNTER;
    const first = Math.max(0, firstAbove(times, this.view[0]) - 1);
    const y = (value) => base - (Math.max(0, value) / most) * COUNTER;
    context.beginPath();
    let x = Math.max(0, this.x(times[first]));
    context.moveTo(x, base);
    for (let index = first; index < times.length && times[index] <= this.view[1]; index += 1) {
      x = Math.max(x, this.x(times[index]));
      context.lineTo(x, index === first ? base : y(values[index - 1]));
      context.lineTo(x, y(values[index]));
    }
    const last = firstAbove(times, this.view[1]) - 1;
    if (last < 0) return;
    context.lineTo(this.width, y(values[last]));
    context.lineTo(this.width, base);
    context.fillStyle = this.colors['series-1'];
    context.globalAlpha = 0.45;
    context.fill();
    context.globalAlpha = 1;
  }

  partAt(x, y) {
    const line = this.lines.find(({ top }) => y >= top && y < top + LINE);
    if (!line) return null;
    const { starts, durations, names } = line;
    // A slice thinner than the pointer is still found.
    const reach = (this.view[1] - this.view[0]) / this.width;
    const time = this.timeAt(x);
    const index = firstAbove(starts, time + reach) - 1;
    if (index < 0 || starts[index] + durations[index] < time - reach) return null;
    return {
      name: this.data.names[names[index]],
      track: line.track,
      start: starts[index],
      duration: durations[index],
    };
  }

  describe(x, y) {
    const part = this.partAt(x, y);
    if (part) {
      return [
        part.name,
        `${timeText(part.duration)}, from ${timeText(part.start, this.whole, part.duration / 100 || 1)}`,
        part.track,
      ];
    }
    const counter = this.counters.find(({ top }) => y >= top && y < top + LABEL + COUNTER);
    if (!counter) return null;
    const time = this.timeAt(x);
    const index = firstAbove(counter.times, time) - 1;
    if (index < 0) return null;
    return [
      counter.name,
      `${valueText(counter.values[index], counter.unit)} at ${timeText(time, this.whole)}`,
    ];
  }

  say(message) {
    super.say(this.matching ? `${this.findings()}; ${message}` : message);
  }

  findings() {
    let [count, total] = [0, 0];
    for (const { names, durations } of this.lines) {
      names.forEach((name, index) => {
        if (!this.matching[name]) return;
        count += 1;
        total += durations[index];
      });
    }
    return `${count.toLocaleString('en')} found, ${timeText(total)}`;
  }
}

function valueText(value, unit) {
  return unit === 'bytes' ? bytesText(value) : `${Number(value.toPrecision(4)).toLocaleString('en')} ${unit}`;
}

for (const figure of document.querySelectorAll('figure.timeline')) TimelineChart.attach(figure);
