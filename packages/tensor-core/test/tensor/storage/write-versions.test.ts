import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ParameterRegions } from '../../../src/tensor/storage/parameter-regions.ts';
import { JointTime, nextWriteTime } from '../../../src/tensor/storage/write-time.ts';
import { WriteVersions } from '../../../src/tensor/storage/write-versions.ts';

const bytes = 24;
const region = fc
  .tuple(fc.nat(bytes), fc.nat(bytes))
  .map(([a, b]) => ({ start: Math.min(a, b), end: Math.max(a, b) }));

/** Writes by themselves, those noted with others, and the end of the latter. */
const event = fc.oneof(
  region.map((written) => ({ kind: 'write' as const, written })),
  fc.nat(2).map((joint) => ({ kind: 'note' as const, joint })),
  fc.nat(2).map((joint) => ({ kind: 'leave' as const, joint })),
);
const joints = fc.tuple(region, region, region);

it('knows when each byte was last written, by itself or with others', () => {
  fc.assert(
    fc.property(
      fc.array(event, { maxLength: 30 }),
      joints,
      region,
      fc.nat(31),
      (events, regions, asked, ago) => {
        const versions = new WriteVersions();
        const times = regions.map(() => new JointTime());
        const joined = new Set(times);
        regions.forEach((of, i) => versions.join(times[i]!, of));
        const lastWrite = new Array<number>(bytes).fill(0);
        const before = nextWriteTime();
        for (const happened of events) {
          if (happened.kind === 'leave') {
            joined.delete(times[happened.joint]!);
            versions.leave(times[happened.joint]!);
            continue;
          }
          const written = happened.kind === 'note' ? regions[happened.joint]! : happened.written;
          if (happened.kind === 'note') {
            if (!joined.has(times[happened.joint]!)) continue;
            times[happened.joint]!.note();
          } else if (written.start === 0 && written.end === bytes) versions.recordWhole();
          else versions.record(written);
          lastWrite.fill(versions.version, written.start, written.end);
        }
        expect(Math.max(...lastWrite)).toBeLessThanOrEqual(versions.version);
        const since = before + ago;
        const expected = lastWrite.slice(asked.start, asked.end).some((time) => time > since);
        expect(versions.writtenSince(since, asked)).toBe(expected);
        expect(versions.writtenSince(versions.version, asked)).toBe(false);
      },
    ),
    { numRuns: 5000 },
  );
});

it('finds a parameter that holds a region', () => {
  const change = fc.record({ region, added: fc.boolean() });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 20 }), region, (changes, asked) => {
      const regions = new ParameterRegions();
      const held: { start: number; end: number }[] = [];
      for (const { region: changed, added } of changes) {
        const at = held.findIndex(({ start, end }) => start === changed.start && end === changed.end);
        if (added) {
          held.push(changed);
          regions.add(changed);
        } else {
          if (at >= 0) held.splice(at, 1);
          regions.remove(changed);
        }
      }
      const around = held.filter(({ start, end }) => start <= asked.start && asked.end <= end);
      const found = regions.around(asked);
      expect(found === null).toBe(around.length === 0);
      if (found)
        expect(around.some(({ start, end }) => start === found.start && end === found.end)).toBe(true);
      expect(regions.count).toBe(new Set(held.map(({ start, end }) => `${start},${end}`)).size);
    }),
    { numRuns: 3000 },
  );
});
