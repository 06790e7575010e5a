import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { renderSentence, renderTerminal } from '../../src/index.ts';
import type { Table } from '../../src/index.ts';
import { manyRows, measurements } from '../fixtures.ts';

function plainTable(): Table {
  const table = measurements();
  table.rows.splice(1, 1);
  return table;
}

/** Notes without the breaks of their lines. */
function inOneLine(text: string): string {
  return text.replaceAll(/\n */g, ' ');
}

describe('renderTerminal', () => {
  it('right-aligns numbers and names failures', () => {
    const lines = renderTerminal(plainTable(), { width: 120 }).split('\n');
    expect(lines).toEqual([
      'Steps & more',
      'Batch 4, 100% measured',
      'Size    Time (ms)  Peak memory (GiB)  Ours / PyTorch  Share of the roof',
      '─────  ──────────  ─────────────────  ──────────────  ─────────────────',
      'small  12.3 ± 0.4               3.00           0.58×             50.0 %',
      'huge          OOM                OOM             OOM                OOM',
      'slow      timeout            timeout         timeout            timeout',
      '1 row OOM: asked 12 GiB, "2 GiB" are free',
      '1 row timeout: no result in 600 s',
      '',
    ]);
  });

  it.each([60, 50, 40, 30, 20])(
    'keeps within %d columns, cuts no number and says what it leaves out',
    (width) => {
      const lines = renderTerminal(plainTable(), { width }).split('\n');
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width);
      const text = lines.join(' ').replaceAll(/ +/g, ' ');
      const [, leftOut = ''] = text.split('leave out: ');
      const shown = { 'Time (ms)': '12.3 ± 0.4', 'Peak memory (GiB)': '3.00', 'Ours / PyTorch': '0.58×' };
      for (const [heading, value] of Object.entries(shown)) {
        expect(text.includes(value)).not.toBe(leftOut.includes(heading));
      }
      // What is stressed stays, and so does the name of each row.
      expect(text).toContain('50.0 %');
      for (const name of ['small', 'huge', 'slow']) expect(text).toContain(name);
    },
  );

  it('leaves details out first, and says at what width all are shown', () => {
    const table = plainTable();
    table.columns[1]!.detail = true;
    const text = inOneLine(renderTerminal(table, { width: 40 }));
    expect(text).toContain('Peak');
    const [, full] = /40 columns leave out: Time \(ms\)\. (\d+) show all\./.exec(text)!;
    expect(renderTerminal(table, { width: Number(full) })).not.toContain('leave out');
    expect(renderTerminal(table, { width: Number(full) - 1 })).toContain('leave out');
  });

  it('shows a ratio with its interval wherever it shows the ratio, and leaves both out together', () => {
    const table = plainTable();
    table.columns.splice(4, 0, { key: 'interval', label: '95 % interval', kind: 'text', qualifies: 'ratio' });
    // Also where the interval would be the first to go.
    for (const detail of [false, true]) {
      table.columns[4]!.detail = detail;
      table.rows[0]!['interval'] = '0.571–0.589';
      for (const emphasis of ['strong', undefined] as const) {
        table.columns[3] = { ...table.columns[3]!, ...(emphasis && { emphasis }) };
        for (let width = 120; width >= 20; width--) {
          const text = renderTerminal(table, { width });
          expect(text.includes('0.58×')).toBe(text.includes('0.571–0.589'));
          if (!text.includes('0.58×'))
            expect(inOneLine(text)).toMatch(/leave out:[^.]*Ours \/ PyTorch[^.]*95 % interval/);
          if (emphasis === 'strong') expect(text).toContain('0.58×');
        }
      }
      delete table.columns[3]!.emphasis;
    }
  });

  it('leaves out numbers without an interval before those that have one, wherever they stand', () => {
    const table = plainTable();
    for (const column of table.columns) delete column.emphasis;
    const [name, time, ...others] = table.columns;
    table.columns = [name!, ...others, time!];
    const text = renderTerminal(table, { width: 40 });
    expect(text).toContain('12.3 ± 0.4');
    expect(inOneLine(text)).toMatch(/leave out: .*Share of the roof/);
  });

  it('takes back what has room again when a wider column had to go too', () => {
    const table = plainTable();
    table.columns[2]!.detail = true;
    const wide = { key: 'wide', label: 'A'.repeat(60), kind: 'number' as const };
    table.columns.splice(3, 0, wide);
    const text = renderTerminal(table, { width: 70 });
    expect(inOneLine(text)).toContain(`leave out: ${wide.label}.`);
    expect(text).toContain('3.00');
  });

  it('leaves out first a status that all rows share because they were measured', () => {
    const table = plainTable();
    table.columns.push({ key: 'status', label: 'Status', kind: 'status', emphasis: 'strong' });
    const firstLeftOut = () => {
      const [, full] = /(\d+) show all/.exec(inOneLine(renderTerminal(table, { width: 20 })))!;
      const text = inOneLine(renderTerminal(table, { width: Number(full) - 1 }));
      return /leave out: (.*)\. \d+ show/.exec(text)![1];
    };
    expect(firstLeftOut()).not.toContain('Status');
    const measured = { status: 'ok', timeMs: 1, peakBytes: 1, ratio: 1, share: 1 } as const;
    for (const row of table.rows) Object.assign(row, measured);
    expect(firstLeftOut()).toBe('Status');
  });

  it('treats what qualifies a missing column like any other', () => {
    const table = plainTable();
    table.columns[1] = { ...table.columns[1]!, qualifies: 'nothing', detail: true };
    expect(inOneLine(renderTerminal(table, { width: 40 }))).toContain('leave out: Time (ms)');
  });

  it.each([undefined, 'strong'] as const)(
    'keeps a measured column where the first one of them, emphasis %s, qualifies another',
    (emphasis) => {
      const table = plainTable();
      for (const column of table.columns) delete column.emphasis;
      table.columns[1] = { ...table.columns[1]!, qualifies: 'ratio', ...(emphasis && { emphasis }) };
      for (let width = 80; width >= 10; width--) {
        const text = renderTerminal(table, { width });
        expect(text.includes('12.3 ± 0.4')).toBe(text.includes('0.58×'));
        expect(text).toMatch(/3\.00|0\.58×|50\.0 %/);
      }
    },
  );

  it('marks a number whose spread is wide, in place, and says what that means', () => {
    const table = plainTable();
    table.rows.splice(1, 2, {
      size: 'wild',
      timeMs: 442,
      timeStdMs: 357,
      peakBytes: 2 ** 30,
      ratio: 1,
      share: 1,
    });
    table.columns.splice(4, 1);
    const lines = renderTerminal(table, { width: 80 }).split('\n');
    expect(lines.slice(2)).toEqual([
      'Size     Time (ms)  Peak memory (GiB)  Ours / PyTorch',
      '─────  ───────────  ─────────────────  ──────────────',
      'small   12.3 ± 0.4               3.00           0.58×',
      'wild   ! 442 ± 357               1.00           1.00×',
      '! The spread is wide: the standard deviation is over 5 % of the value.',
      '',
    ]);
  });

  it('calls a spread wide above 5 % of the value, and not at it', () => {
    const isMarked = (timeMs: number, timeStdMs: number | null, status: 'ok' | 'failed' = 'ok') =>
      renderTerminal({ ...plainTable(), rows: [{ size: 'a', timeMs, timeStdMs, status }] }).includes('!');
    expect([4.99, 5, 5.01].map((deviation) => isMarked(100, deviation))).toEqual([false, false, true]);
    expect([isMarked(-100, 5), isMarked(-100, 5.01)]).toEqual([false, true]);
    expect([isMarked(100, null), isMarked(0, 1), isMarked(NaN, 1, 'failed')]).toEqual([false, false, false]);
    // A row that failed may have been timed before.
    expect(isMarked(100, 50, 'failed')).toBe(true);
  });

  it('parts the headings that it leaves out, which may hold commas', () => {
    const table = plainTable();
    Object.assign(table.columns[1]!, { detail: true, label: 'Time, in place' });
    Object.assign(table.columns[2]!, { detail: true });
    const text = inOneLine(renderTerminal(table, { width: 24 }));
    expect(text).toContain('leave out: Time, in place (ms); Peak memory (GiB)');
  });

  it('says once what all rows share, where there is no room for it in each', () => {
    const table = plainTable();
    table.columns.splice(1, 0, { key: 'dtype', label: 'Dtype', kind: 'text' });
    for (const row of table.rows) row['dtype'] = 'bfloat16';
    expect(renderTerminal(table, { width: 120 })).not.toContain('All rows');
    const narrow = renderTerminal(table, { width: 50 });
    expect(narrow).toContain('All rows: Dtype bfloat16.');
    expect(narrow).not.toContain('leave out');
  });

  it('says it together with what the caption says of all rows', () => {
    const table = { ...plainTable(), caption: 'Medians. All rows: batch 4, eager.' };
    table.columns.splice(1, 0, { key: 'dtype', label: 'Dtype', kind: 'text' });
    for (const row of table.rows) row['dtype'] = 'bfloat16';
    const text = inOneLine(renderTerminal(table, { width: 50 }));
    expect(text).toContain('Medians. All rows: batch 4, eager, Dtype bfloat16.');
    expect(text.match(/All rows/g)).toHaveLength(1);
  });

  it('breaks no line between a number and its unit, and hangs the lines of a note', () => {
    const table = plainTable();
    table.rows[0]!['size'] = '10 MB in 12 ms';
    table.rows[1]!['error'] = 'asked for 12 GiB where only 2 GiB of 80 GiB are free';
    for (let width = 60; width >= 20; width--) {
      const lines = renderTerminal(table, { width }).split('\n');
      for (const line of lines) expect(line).not.toMatch(/^ *(MB|ms|GiB)\b/);
      const first = lines.findIndex((line) => line.startsWith('1 row OOM'));
      const next = lines.findIndex((line) => line.startsWith('1 row timeout'));
      for (const line of lines.slice(first + 1, next)) expect(line).toMatch(/^ {2}\S/);
    }
  });

  it('shortens names in the middle, down to 24 columns', () => {
    const table = plainTable();
    table.columns[0]!.overflow = 'shorten';
    table.rows[0]!['size'] = 'void kernels::elementwise_of_many<float, 4>(float const*, long)';
    const line = (width: number) =>
      renderTerminal(table, { width })
        .split('\n')
        .find((each) => each.startsWith('void'))!;
    expect(line(120)).toContain(table.rows[0]!['size']);
    expect(line(90)).toMatch(/^void kernels::elementwise_of.+….+, long\) {2}12\.3 ± 0\.4/);
    expect(line(50)).toMatch(/^void kernels::elemen…\*, long\) {2}/);
  });

  it('breaks long text but no number', () => {
    const text = renderTerminal(measurements(), { width: 80 });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(text).toContain('1500 ± 13');
    expect(text).not.toContain('…');
  });

  it('breaks a word that is wider than its column, and no other', () => {
    const table = plainTable();
    table.rows[0]!['size'] = `several short words before ${'x'.repeat(60)} and behind it`;
    const text = renderTerminal(table, { width: 60 });
    expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(60);
    const words = text.match(/[a-z]+/g)!;
    for (const word of ['several', 'short', 'words', 'before', 'and', 'behind', 'it'])
      expect(words).toContain(word);
    expect(words.filter((word) => /^x+$/.test(word)).join('')).toBe('x'.repeat(60));
  });

  it('colours only on request, with the same text', () => {
    const plain = renderTerminal(plainTable(), { width: 100 });
    const colored = renderTerminal(plainTable(), { width: 100, color: true });
    expect(plain).toBe(stripVTControlCharacters(plain));
    expect(colored).not.toBe(plain);
    expect(stripVTControlCharacters(colored)).toBe(plain);
  });

  it('takes eight times as long for eight times the rows, and draws all of them alike', () => {
    const table = manyRows(24_000);
    table.columns.splice(2);
    const drawn = (count: number) => {
      const start = process.cpuUsage();
      const lines = renderTerminal({ ...table, rows: table.rows.slice(-count) }).split('\n');
      // What other processes take of the processor meanwhile is not counted.
      return { lines, cpuUs: process.cpuUsage(start).user };
    };
    drawn(3000);
    const [few, all] = [drawn(3000), drawn(24_000)];
    expect(all.cpuUs / few.cpuUs).toBeLessThan(20);
    expect(all.lines).toHaveLength(few.lines.length + 21_000);
    expect(all.lines.slice(-2900, -5)).toEqual(few.lines.slice(-2900, -5));
  }, 60_000);

  it('refuses a table without columns by name', () => {
    expect(() => renderTerminal({ ...measurements(), columns: [] })).toThrow(/'steps' has no columns/);
  });
});

describe('renderSentence', () => {
  it('breaks at words, hangs, keeps units with their numbers, and ends with a line break', () => {
    const text = 'Compiling takes 608 ms, and the machine was busy.';
    expect(renderSentence(text, { width: 20 })).toBe(
      'Compiling takes\n  608 ms, and the\n  machine was busy.\n',
    );
    expect(renderSentence(text, { width: 200 })).toBe(`${text}\n`);
  });

  it('keeps the line breaks of a text, and prints no control code', () => {
    expect(renderSentence('one two\nthree\u001b[2J', { width: 8 })).toBe('one two\n  three\ufffd[2J\n');
  });
});
