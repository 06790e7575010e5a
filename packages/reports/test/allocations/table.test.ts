import { describe, expect, it } from 'vitest';
import { allocationTable, renderTerminal } from '../../src/index.ts';
import { findPeak } from '../../src/allocations/peak.ts';
import { smallAllocations } from '../chart-fixtures.ts';

describe('findPeak', () => {
  it('counts what is freed at the moment of an allocation as room for it', () => {
    const peak = findPeak(smallAllocations().allocations);
    expect([peak.timeUs, peak.bytes]).toEqual([30, 1600]);
    expect(peak.live.map(({ label }) => label)).toEqual(['weight', 'scores', 'output']);
  });

  it('is nothing where nothing was allocated', () => {
    expect(findPeak([])).toEqual({ timeUs: 0, bytes: 0, live: [] });
  });
});

describe('allocationTable', () => {
  it('gives what was live at the peak by label, with its share', () => {
    const table = allocationTable(smallAllocations());
    expect(table.caption).toBe('Live at the peak of 1.56 KiB.');
    const captioned = allocationTable(smallAllocations({ caption: 'tiny, float32' }));
    expect(captioned.caption).toBe('tiny, float32. Live at the peak of 1.56 KiB.');
    expect(table.rows.map(({ label, bytes, share }) => [label, bytes, share])).toEqual([
      ['weight', 1000, 0.625],
      ['scores', 500, 0.3125],
      ['output', 100, 0.0625],
    ]);
    expect(renderTerminal(table)).toContain('62.5 %');
  });

  it('refuses a free before its allocation, and a size below zero', () => {
    const allocation = { label: 'a', bytes: 1, startUs: 5, endUs: 4 };
    expect(() => allocationTable(smallAllocations({ allocations: [allocation] }))).toThrow(
      /allocations 'step-memory', 'a': endUs is 4, its start 5/,
    );
    const negative = { ...allocation, bytes: -1, endUs: null };
    expect(() => allocationTable(smallAllocations({ allocations: [negative] }))).toThrow(/bytes is -1/);
  });
});
