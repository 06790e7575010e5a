import fc from 'fast-check';
import { expect, it } from 'vitest';
import { ParameterRegions } from '../../../src/tensor/storage/parameter-regions.ts';
import { WriteVersions } from '../../../src/tensor/storage/write-versions.ts';

const bytes = 24;
const region = fc
  .tuple(fc.nat(bytes), fc.nat(bytes))
  .map(([a, b]) => ({ start: Math.min(a, b), end: Math.max(a, b) }));

it('knows of each byte when it was written last', () => {
  fc.assert(
    fc.property(fc.array(region, { maxLength: 30 }), region, fc.nat(31), (writes, asked, since) => {
      const versions = new WriteVersions();
      const lastWrite = new Array<number>(bytes).fill(0);
      for (const written of writes) {
        if (written.start === 0 && written.end === bytes) versions.recordWhole();
        else versions.record(written);
        lastWrite.fill(versions.version, written.start, written.end);
      }
      expect(versions.version).toBe(writes.length);
      const expected = lastWrite.slice(asked.start, asked.end).some((version) => version > since);
      expect(versions.writtenSince(since, asked)).toBe(expected);
    }),
    { numRuns: 3000 },
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
