import { describe, expect, it } from 'vitest';
import { compete, type Contender } from '../../../src/benchmarks/flash/contender.ts';

const contest = {
  passes: ['forward', 'both'] as const,
  rounds: 2,
  turn: { warmupMs: 1, repeatMs: 2 },
  onTurn: async () => {},
};

/** Logs its turns; fails in the one named. */
function contender(attention: 'plain' | 'flash', log: string[], failsAt = ''): Contender {
  let samples = 0;
  const turn = (what: string) => {
    log.push(`${attention} ${what}`);
    if (what === failsAt) throw new RangeError(`no ${what}`);
  };
  return {
    name: { side: 'ours', attention },
    probe: async () => {
      turn('probe');
      return 100;
    },
    sample: async (pass) => {
      turn(pass);
      return [++samples];
    },
    explain: (error) =>
      error instanceof RangeError ? { status: 'out-of-memory', reason: error.message } : null,
  };
}

describe('compete', () => {
  it('probes all, then samples them in turn', async () => {
    const log: string[] = [];
    const outcomes = await compete([contender('plain', log), contender('flash', log)], contest);
    const round = ['plain forward', 'flash forward', 'plain both', 'flash both'];
    expect(log).toEqual(['plain probe', 'flash probe', ...round, ...round]);
    const outcome = { status: 'ok', peakBytes: 100, samplesMs: { forward: [1, 3], both: [2, 4] } };
    expect(outcomes).toEqual([outcome, outcome]);
  });

  it.each(['probe', 'both'])('leaves out what fails in %s, and says why', async (failsAt) => {
    const log: string[] = [];
    const outcomes = await compete([contender('plain', log, failsAt), contender('flash', log)], contest);
    expect(outcomes[0]).toEqual({ status: 'out-of-memory', reason: `no ${failsAt}` });
    expect(outcomes[1]).toMatchObject({ status: 'ok', samplesMs: { forward: [1, 3], both: [2, 4] } });
    expect(log.lastIndexOf(`plain ${failsAt}`)).toBe(log.indexOf(`plain ${failsAt}`));
  });

  it('throws what no contender explains', async () => {
    const broken = contender('flash', []);
    broken.probe = () => Promise.reject(new TypeError('a fault'));
    await expect(compete([broken], contest)).rejects.toThrow('a fault');
  });
});
