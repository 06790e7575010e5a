import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readSlowdowns, slowdownsBetween } from '../../src/records/cpu-slowdowns.ts';
import { temporaryFolder } from '../fixtures/temporary-folder.ts';

/** Writes what Linux counts for one CPU, as text. */
function write(folder: string, cpu: string, counts: Readonly<Record<string, string>>): void {
  const counters = join(folder, cpu, 'thermal_throttle');
  mkdirSync(counters, { recursive: true });
  for (const [name, text] of Object.entries(counts)) writeFileSync(join(counters, name), text);
}

const between = (folder: string, change: () => void) => {
  const before = readSlowdowns(folder)!;
  change();
  return slowdownsBetween(before, readSlowdowns(folder)!);
};

describe('slowdowns of the CPU', () => {
  it('are the most that a core or a whole CPU had meanwhile', () => {
    const folder = temporaryFolder();
    write(folder, 'cpu0', { core_throttle_count: '3\n', package_throttle_count: '10\n' });
    write(folder, 'cpu11', { core_throttle_count: '0\n', package_throttle_count: '10\n' });
    expect(between(folder, () => {})).toBe(0);
    expect(between(folder, () => write(folder, 'cpu11', { core_throttle_count: '4\n' }))).toBe(4);
    expect(between(folder, () => write(folder, 'cpu0', { package_throttle_count: '15\n' }))).toBe(5);
  });

  it('are not known where nothing counts them', () => {
    const folder = temporaryFolder();
    expect(readSlowdowns(join(folder, 'none'))).toBeNull();
    mkdirSync(join(folder, 'cpu0'));
    // No CPU, and a counter that is none.
    write(folder, 'cpufreq', { core_throttle_count: '1\n' });
    write(folder, 'cpu1', { core_throttle_count: 'unsupported\n', core_throttle_total_time_ms: '7\n' });
    expect(readSlowdowns(folder)).toBeNull();
  });

  it('say nothing of counters that begin anew, or that come and go', () => {
    const folder = temporaryFolder();
    write(folder, 'cpu0', { core_throttle_count: '8\n' });
    expect(between(folder, () => write(folder, 'cpu0', { core_throttle_count: '2\n' }))).toBeNull();
    write(folder, 'cpu1', { core_throttle_count: '1\n' });
    const both = readSlowdowns(folder)!;
    const one = new Map([...both].slice(0, 1));
    expect(slowdownsBetween(one, both)).toBe(0);
    expect(slowdownsBetween(both, one)).toBe(0);
    expect(slowdownsBetween(both, new Map())).toBeNull();
  });
});
