import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ReportError } from '@roofline/reports';
import { afterAll, describe } from 'vitest';
import { z } from 'zod';
import {
  type HostileCall,
  type HostileTable,
  describeHostileArguments,
  exempt,
} from '../../../tooling/hostile-arguments.ts';
import * as harness from '../src/index.ts';
import { toyEnvironment } from './fixtures/environment.ts';
import { toyRecord } from './fixtures/records.ts';

type Legal = NonNullable<HostileCall['legal']>;
const under = (prefix: string, legal: Legal): Legal =>
  Object.fromEntries(Object.entries(legal).map(([place, values]) => [`${prefix}.${place}`, values]));

const numbers = '5 NaN Infinity';
const anything = 'undefined null 5 a {} [] NaN Infinity symbol 1n fn option duck';
const objects = '{} option duck';

const folder = mkdtempSync(join(tmpdir(), 'roofline-hostile-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
/** A folder of the name 'a', which a hostile path would make. */
const undo = () => rmSync('a', { recursive: true, force: true });
if (existsSync('a')) throw new Error('A folder named "a" is in the way of this test.');

/** Takes any parameters, and has nothing to measure. */
const definition = () => ({
  name: 'none',
  title: 'Nothing',
  parameters: z.json(),
  cell: z.json() as unknown as z.ZodType<harness.JsonObject>,
  result: z.json() as unknown as z.ZodType<harness.JsonObject>,
  settings: () => ({}),
  expand: (): harness.JsonObject[] => [],
  describe: () => 'nothing',
  measure: () => ({}),
  samplesMs: () => [],
  peakBytes: () => null,
  cost: () => null,
  columns: [{ key: 'a', label: 'A', kind: 'text' as const, value: () => 'a', deviation: () => null }],
  table: () => ({ kind: 'table' as const, id: 'none', title: 'Nothing', columns: [], rows: [] }),
  overview: [() => []],
  findings: [() => []],
  lead: () => null,
  sections: [() => []],
  cellParameters: {},
});
const declared = () => ({ schema: z.number() });
const benchmark = () => harness.defineBenchmark(definition());
const entries = () => [...harness.benchmarkEntries.filter(({ name }) => name === 'e2e')];

const environmentLegal: Legal = {
  'device.label': 'a',
  'device.name': 'a',
  'device.properties': '{} option',
  'device.properties.threads': '5 a',
  'system.platform': 'a',
  'system.release': 'a',
  'system.architecture': 'a',
  'system.cpuModel': 'a',
  'system.cpuCores': '5',
  'system.memoryBytes': '5',
  node: 'a',
  packages: '{}',
  'packages.@roofline/tensor-core': 'a',
  variables: '{}',
  git: 'null',
};
const ceilings = () => ({ matmulFlopsPerSecond: { float32: 1e12 }, copyBytesPerSecond: 1e11 });
const ceilingsLegal: Legal = {
  matmulFlopsPerSecond: '{}',
  'matmulFlopsPerSecond.float32': '5',
  copyBytesPerSecond: '5',
};

/** An object that no hostile value gets into: its benchmark alone knows what is in it. */
const opaque = <T extends object>(parts: T): T => Object.assign(Object.create({}) as T, parts);
const record = (): harness.CellRecord => {
  const { parameters, settings, result, ...rest } = toyRecord();
  return { ...rest, parameters: opaque(parameters), settings: opaque(settings), result: opaque(result!) };
};
const recordLegal: Legal = {
  key: 'a',
  settings: objects,
  ...under('environment', environmentLegal),
  ceilings: 'null',
  ...under('ceilings', ceilingsLegal),
  durationMs: '5',
  error: 'null',
};
const unreadable = 'that this version reads';

const report = () => ({
  title: 'Roofline',
  createdAt: '2025-11-21T00:47:31.000Z',
  summary: [],
  environment: [],
  sections: [],
});
const step = () => ({ deviceMs: 1, wallMs: 2, phasesMs: { forward: 1 } });
const stepLegal = {
  0: '[]',
  '0.0.deviceMs': numbers,
  '0.0.wallMs': numbers,
  '0.0.phasesMs': '{} option',
  '0.0.phasesMs.forward': numbers,
};
const device = () => ({ recordEvent: () => ({ elapsedMs: () => 1 }), synchronize: () => {} });
const aborted = AbortSignal.abort();

const comparison = () => ({
  cell: 'e2e: small',
  before: record(),
  after: record(),
  times: { beforeMs: 1, afterMs: 2, ratio: { ratio: 2, low: 1, high: 3 } },
  memoryRatio: 1,
});

const table: HostileTable = {
  'new ResultsFileError': exempt('an error: its message is whatever it is given'),
  'new UsageError': exempt('an error: its message is whatever it is given'),
  'new ArgumentError': exempt('an error: its message is whatever it is given'),
  defineBenchmark: {
    args: () => [definition()],
    legal: {
      '0.name': 'a',
      '0.title': 'a',
      '0.settings': 'fn',
      '0.expand': 'fn',
      // A cell of no parameters.
      '0.cell': '{}',
      '0.cellParameters': 'undefined {}',
      '0.describe': 'undefined fn',
      '0.measure': 'undefined fn',
      '0.samplesMs': 'fn',
      '0.peakBytes': 'undefined fn',
      '0.cost': 'undefined fn',
      '0.columns': 'undefined []',
      '0.columns.0.key': 'a',
      '0.columns.0.label': 'a',
      '0.columns.0.value': 'fn',
      '0.columns.0.deviation': 'undefined fn',
      '0.table': 'undefined fn',
      '0.overview': 'undefined []',
      '0.overview.0': 'fn',
      '0.findings': 'undefined []',
      '0.findings.0': 'fn',
      '0.lead': 'undefined fn',
      '0.sections': 'undefined []',
      '0.sections.0': 'fn',
    },
    deep: [0],
  },
  parameter: {
    args: () => [
      z.string(),
      {
        title: 'A',
        description: 'It is a.',
        column: 'swept',
        emphasis: 'strong',
        usual: 'a',
        beside: 'b',
        shown: { key: 'said', text: () => 'a' },
        flag: { name: 'a', describe: 'A', default: 'a', synonyms: { b: 'a' }, completions: ['a'] },
        words: () => 'a',
      },
    ],
    legal: {
      1: 'undefined {}',
      '1.title': 'undefined a',
      '1.description': 'undefined a',
      '1.column': 'undefined',
      '1.emphasis': 'undefined',
      '1.usual': 'undefined null 5 a {} [] option duck',
      '1.beside': 'undefined a',
      '1.shown': 'undefined',
      '1.shown.key': 'a',
      '1.shown.text': 'fn',
      '1.flag': 'undefined',
      '1.flag.name': 'undefined a',
      '1.flag.describe': 'a',
      '1.flag.default': 'undefined a',
      '1.flag.synonyms': 'undefined {}',
      '1.flag.synonyms.b': 'a',
      '1.flag.completions': 'undefined []',
      '1.flag.completions.0': 'a',
      '1.words': 'undefined fn',
    },
    deep: [1],
  },
  sweepOf: {
    args: () => [{ cell: { a: declared() }, settings: { b: declared() }, nested: ['a'] }],
    legal: { '0.settings': '{}', '0.nested': 'undefined', '0.nested.0': 'a' },
    deep: [0],
  },
  loadBenchmark: {
    args: () => ['e2e', entries()],
    legal: { 1: 'undefined' },
    named: 'loadBenchmark|There is no benchmark',
  },
  floorMs: {
    args: () => [[{ flops: 1, bytes: 1 }], ceilings(), 'float32'],
    legal: { 0: '[]', '0.0.flops': numbers, '0.0.bytes': numbers, ...under('1', ceilingsLegal) },
    deep: [0, 1],
  },
  prepareDevice: {
    args: () => ['cpu', [], { signal: aborted, onStatus: () => {}, freshCeilings: false }],
    legal: {
      0: 'a',
      1: 'null []',
      2: 'undefined {}',
      '2.signal': 'undefined',
      '2.onStatus': 'undefined fn',
      '2.freshCeilings': 'undefined',
    },
  },
  describeEnvironment: {
    args: () => [toyEnvironment.device],
    legal: {
      '0.label': 'a',
      '0.name': 'a',
      '0.properties': '{} option',
      '0.properties.threads': '5 a',
    },
    deep: [0],
  },
  readResults: { args: () => [folder], named: 'readResults|a does not exist|holds no results' },
  reportOfRecords: {
    args: () => [[record()], entries()],
    legal: { ...under('0.0', recordLegal), 1: 'undefined' },
    deep: [0],
    named: `reportOfRecords|loadBenchmark|There is no benchmark|${unreadable}`,
  },
  compareRecords: {
    args: () => [[record()], [record()], entries()],
    legal: {
      ...under('0.0', recordLegal),
      ...under('1.0', recordLegal),
      '1.0.benchmark': 'a',
      2: 'undefined',
    },
    deep: [0, 1],
    named: `compareRecords|loadBenchmark|There is no benchmark|${unreadable}`,
  },
  comparisonTable: {
    args: () => [[comparison()]],
    legal: {
      0: '[]',
      '0.0.cell': 'a',
      ...under('0.0.before', {
        ...recordLegal,
        benchmark: 'a',
        parameters: objects,
        result: `null ${objects}`,
      }),
      ...under('0.0.after', {
        ...recordLegal,
        benchmark: 'a',
        parameters: objects,
        result: `null ${objects}`,
      }),
      '0.0.times': 'null',
      '0.0.times.beforeMs': numbers,
      '0.0.times.afterMs': numbers,
      '0.0.times.ratio.ratio': numbers,
      '0.0.times.ratio.low': numbers,
      '0.0.times.ratio.high': numbers,
      '0.0.memoryRatio': `null ${numbers}`,
    },
    deep: [0],
  },
  writeReport: {
    args: () => [report(), folder, { png: false }],
    legal: {
      '0.title': 'a',
      '0.createdAt': 'a',
      '0.summary': '[]',
      '0.environment': '[]',
      '0.sections': '[]',
      1: 'a',
      2: 'undefined {}',
      '2.png': 'undefined',
    },
    named: 'writeReport|renderHtml',
    undo,
  },
  runSweep: {
    args: () => [
      benchmark(),
      {
        parameters: {},
        environment: toyEnvironment,
        ceilings: ceilings(),
        out: folder,
        forceNew: false,
        timeoutMs: 1000,
        signal: aborted,
        observer: {
          sweepStarted: () => {},
          cellStarted: () => {},
          cellProgressed: () => {},
          cellFinished: () => {},
        },
        task: 'none',
        isCurrent: () => true,
        hasTimeFor: () => true,
        sharesProcess: false,
      },
    ],
    legal: {
      '0.name': 'a',
      '0.title': 'a',
      // Parts of its definition that a sweep leaves alone.
      ...Object.fromEntries(
        ['cell', 'cost', 'columns', 'table', 'overview', 'findings', 'lead', 'sections'].map((name) => [
          `0.${name}`,
          anything,
        ]),
      ),
      ...Object.fromEntries(
        [
          'describe',
          'cellOf',
          'samplesMs',
          'peakBytes',
          'question',
          'toTable',
          'toOverview',
          'toReport',
          'toPictures',
        ].map((name) => [`0.${name}`, 'fn']),
      ),
      '0.measure': 'undefined fn',
      '0.cellParameters': '{}',
      '1.parameters': objects,
      ...under('1.environment', environmentLegal),
      '1.ceilings': 'null',
      ...under('1.ceilings', ceilingsLegal),
      '1.out': 'a',
      '1.forceNew': 'undefined',
      '1.timeoutMs': 'undefined null 5',
      '1.signal': 'undefined',
      '1.observer': `undefined ${objects}`,
      '1.observer.sweepStarted': 'undefined fn',
      '1.observer.cellStarted': 'undefined fn',
      '1.observer.cellProgressed': 'undefined fn',
      '1.observer.cellFinished': 'undefined fn',
      '1.task': 'undefined a',
      '1.isCurrent': 'undefined fn',
      '1.hasTimeFor': 'undefined fn',
      '1.sharesProcess': 'undefined',
    },
    deep: [1],
    undo,
  },
  ratioOfMedians: { args: () => [[1], [1]], legal: { '0.0': numbers, '1.0': numbers }, deep: [0, 1] },
  summarize: { args: () => [[1]], legal: { '0.0': numbers }, deep: [0] },
  collectSteps: { args: () => [[step()]], legal: stepLegal, deep: [0] },
  timeStep: {
    args: () => [device(), () => {}],
    legal: { 1: 'fn' },
    // What it gives is the device's own.
    whole: [0],
  },
};

describe('each dtype of a device', () => {
  const { prepareDevice } = harness;
  describeHostileArguments(
    { prepareDevice },
    {
      prepareDevice: {
        args: () => [['float32']],
        call: (dtypes: never) => prepareDevice('cpu', dtypes, { signal: aborted }),
        legal: { 0: 'null []' },
        deep: [0],
      },
    },
    [harness.ArgumentError],
  );
});

describe('everything that is exported', () =>
  describeHostileArguments(harness, table, [harness.ArgumentError, harness.UsageError, ReportError]));
