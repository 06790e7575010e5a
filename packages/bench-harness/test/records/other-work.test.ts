import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpus } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { otherWorkBetween, readTimes, secondsOfStat, watchOtherWork } from '../../src/records/other-work.ts';

const isLinux = process.platform === 'linux';
/** Says so once it has used a second of a processor, and goes on. */
const spin =
  'const used = () => process.cpuUsage().user; while (used() < 1e6); process.stdout.write("used"); for (;;);';

describe('the work of others', () => {
  it('is what the processors did apart from this process and what it has started', () => {
    const before = { atSeconds: 10, cores: 4, busy: 100, own: 7 };
    // In two seconds three cores were busy, one of them with this.
    expect(otherWorkBetween(before, { atSeconds: 12, cores: 4, busy: 106, own: 9 })).toEqual({
      ...{ busyCores: 2, cores: 4 },
    });
    expect(otherWorkBetween(before, { atSeconds: 12, cores: 4, busy: 101.9, own: 9 })).toEqual({
      ...{ busyCores: 0, cores: 4 },
    });
    expect(otherWorkBetween(before, { atSeconds: 10.1, cores: 4, busy: 106, own: 9 })).toBeNull();
  });

  it('is read of a process whose name holds spaces and brackets', () => {
    const fields = ['S', ...Array.from({ length: 40 }, (_, i) => String(10 ** 6 + i))];
    [250, 50, 1000, 200].forEach((ticks, i) => (fields[11 + i] = String(ticks)));
    expect(secondsOfStat(`42 (a (b) c) ${fields.join(' ')}\n`)).toBe(15);
  });

  it.runIf(isLinux)(
    'counts what this process has started as its own once it has ended, and not before',
    async () => {
      const before = readTimes()!;
      const usedBefore = process.cpuUsage();
      const child = spawn(process.execPath, ['-e', spin], { stdio: ['ignore', 'pipe', 'inherit'] });
      await once(child.stdout, 'data');
      const during = readTimes()!;
      const { user, system } = process.cpuUsage(usedBefore);
      child.kill('SIGKILL');
      await once(child, 'close');
      const after = readTimes()!;
      // Of this process alone, which other tests may keep busy meanwhile; each reading is rounded to ticks.
      expect(during.own - before.own - (user + system) / 1e6).toBeLessThan(0.1);
      expect(during.busy - before.busy).toBeGreaterThan(0.7);
      expect(after.own - during.own).toBeGreaterThan(0.7);
      expect(after.cores).toBe(cpus().length);
    },
  );

  it.runIf(isLinux)('is reported for a measurement, but not for one that is too short', async () => {
    const watch = watchOtherWork();
    expect(watch()).toBeNull();
    await sleep(300);
    const { busyCores, cores } = watch()!;
    expect(busyCores).toBeGreaterThanOrEqual(0);
    expect(busyCores).toBeLessThan(cores + 0.5);
  });
});
