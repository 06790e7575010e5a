import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { canonicalJson, type JsonObject } from '../../src/records/json.ts';
import { deviceIdentity, type Environment } from '../../src/records/environment.ts';
import {
  cellKey,
  identityOf,
  latestRecords,
  sweepIdentity,
  type CellRecord,
} from '../../src/records/record.ts';
import { readResultsFile } from '../../src/records/results-file.ts';
import { toyEnvironment } from '../fixtures/environment.ts';
import { toyRecord } from '../fixtures/records.ts';

const gpu: Environment = {
  ...toyEnvironment,
  device: { label: 'cuda:0', type: 'cuda', name: 'Toy GPU', properties: { threads: 1, driverCuda: '13.0' } },
  variables: { ROOFLINE_FLOAT32_MATMUL: 'split-half' },
};

interface Asked {
  readonly benchmark: string;
  readonly settings: JsonObject;
  readonly environment: Environment;
  readonly parameters: JsonObject;
}

const asked: Asked = {
  benchmark: 'e2e',
  settings: { warmup: 5, steps: 10, peer: { name: 'torch', version: '2.0' } },
  environment: gpu,
  parameters: { size: 'small', shape: { layers: 2, heads: 4 }, context: 16 },
};

const keyOf = ({ benchmark, settings, environment, parameters }: Asked) =>
  cellKey(sweepIdentity(benchmark, settings, environment), parameters);
const on = (changes: Partial<Environment>): Partial<Asked> => ({ environment: { ...gpu, ...changes } });

describe('the key of a cell', () => {
  it.each<[string, Partial<Asked>]>([
    ['the benchmark', { benchmark: 'warmup' }],
    ['a setting', { settings: { ...asked.settings, warmup: 6 } }],
    ['a setting within one', { settings: { ...asked.settings, peer: { name: 'torch', version: '2.1' } } }],
    ['a setting more', { settings: { ...asked.settings, seed: 0 } }],
    ['a parameter', { parameters: { ...asked.parameters, context: 17 } }],
    ['a parameter within one', { parameters: { ...asked.parameters, shape: { layers: 2, heads: 2 } } }],
    ['the device', on({ device: { ...gpu.device, name: 'Other GPU' } })],
    ['the value of a variable', on({ variables: { ROOFLINE_FLOAT32_MATMUL: 'sgemm' } })],
    ['a variable', on({ variables: {} })],
    ['a number for a text', { parameters: { ...asked.parameters, context: '16' } }],
  ])('is another where %s is another', (_part, changes) => {
    expect(keyOf({ ...asked, ...changes })).not.toBe(keyOf(asked));
  });

  it.each<[string, Partial<Asked>]>([
    ['the commit', on({ git: { commit: 'abc', dirty: true } })],
    ['the versions', on({ packages: {}, node: 'v25.0.0' })],
    ['the index of the device', on({ device: { ...gpu.device, label: 'cuda:1' } })],
    ['its driver', on({ device: { ...gpu.device, properties: {} } })],
    ['the host of a GPU', on({ system: { ...gpu.system, cpuModel: 'Other CPU', cpuCores: 64 } })],
    [
      'the order of names',
      { parameters: { context: 16, shape: { heads: 4, layers: 2 }, size: 'small' } as JsonObject },
    ],
  ])('is the same whatever %s', (_part, changes) => {
    expect(keyOf({ ...asked, ...changes })).toBe(keyOf(asked));
  });

  it('is the one of the records that are published, so that their folders resume', () => {
    const path = new URL('../../../../docs/results/cpu-float32/results.jsonl', import.meta.url);
    const records = readResultsFile(fileURLToPath(path));
    expect(records.length).toBeGreaterThan(0);
    for (const record of records) expect(cellKey(identityOf(record), record.parameters)).toBe(record.key);
    expect(records[0]!.key).toMatch(/^[0-9a-f]{16}$/);
  });
});

describe('the identity of a device', () => {
  it('is the name of a GPU, and the model and threads of a CPU', () => {
    expect(deviceIdentity(gpu)).toBe('Toy GPU');
    expect(deviceIdentity(toyEnvironment)).toBe('Toy CPU, 2 threads');
    const { device, system } = toyEnvironment;
    const cpu = (changes: Partial<Environment>) => deviceIdentity({ ...toyEnvironment, ...changes });
    expect(cpu({ device: { ...device, properties: { threads: 7 } } })).toBe('Toy CPU, 7 threads');
    expect(cpu({ device: { ...device, properties: {} }, system: { ...system, cpuCores: 5 } })).toBe(
      'Toy CPU, 5 threads',
    );
    expect(cpu({ system: { ...system, cpuModel: 'Other CPU' } })).toBe('Other CPU, 2 threads');
  });
});

it('identityOf gives what a record shares with its sweep', () => {
  expect(identityOf(toyRecord({}, { environment: gpu, settings: { steps: 3 } }))).toEqual({
    benchmark: 'e2e',
    device: 'Toy GPU',
    variables: { ROOFLINE_FLOAT32_MATMUL: 'split-half' },
    settings: { steps: 3 },
  });
});

it('latestRecords keeps the last of each key at the place of the first', () => {
  const record = (key: string, durationMs: number): CellRecord => toyRecord({}, { key, durationMs });
  const latest = latestRecords([record('a', 1), record('b', 2), record('a', 3), record('c', 4)]);
  expect(latest.map(({ key, durationMs }) => [key, durationMs])).toEqual([
    ['a', 3],
    ['b', 2],
    ['c', 4],
  ]);
});

describe('canonicalJson', () => {
  it('sorts the names of objects at every depth, and nothing else', () => {
    expect(canonicalJson({ b: [3, { d: 1, c: null }, 2], a: 'x' })).toBe(
      '{"a":"x","b":[3,{"c":null,"d":1},2]}',
    );
    expect([null, true, 'b', [2, 1]].map(canonicalJson)).toEqual(['null', 'true', '"b"', '[2,1]']);
  });

  it('leaves out what is undefined', () => {
    expect(canonicalJson({ a: undefined, b: 1 } as never)).toBe('{"b":1}');
  });
});
