import { formatBytes, formatNumber, formatPercent, type Report } from '@roofline/reports';
import { dtypes, type Ceilings } from '../measuring/ceilings.ts';
import { titleOf, type Parameter, type Parameters } from '../parameters/parameter.ts';
import { capitalize, inWords } from '../parameters/words.ts';
import { describeValue } from '../records/describe-value.ts';
import type { Json } from '../records/json.ts';
import type { CellRecord } from '../records/record.ts';

/** What a reader needs to judge the numbers, and to measure them again; settings by the titles that `declared` gives them. */
export function environmentFacts(record: CellRecord, declared: Parameters = {}): Report['environment'] {
  const { environment, settings } = record;
  const asked: [string, string][] = [
    ['Commit', commitOf(environment)],
    ...Object.entries(environment.variables),
    ...Object.entries(settings).map(([key, value]) => settingFact(key, value, declared[key])),
  ];
  return [...placeFacts(record), ...asked.map(([label, value]) => ({ label, value }))];
}

/** Where and with what a record was measured, whatever was asked. */
export function placeFacts({ environment, ceilings }: CellRecord): Report['environment'] {
  const { device, system } = environment;
  const facts: [string, string | number][] = [
    ['Device', `${device.name} (${device.label})`],
    ...propertyFacts(device.properties),
    ...(ceilings ? ceilingFacts(ceilings) : []),
    ['CPU', `${system.cpuModel}, ${system.cpuCores} cores`],
    ['System memory', formatBytes(system.memoryBytes)],
    ['System', `${system.platform} ${system.release} ${system.architecture}`],
    ['Node.js', environment.node],
    ...Object.entries(environment.packages),
  ];
  return facts.map(([label, value]) => ({ label, value: String(value) }));
}

export function commitOf({ git }: CellRecord['environment']): string {
  return git ? `${git.commit}${git.dirty ? ', with changes' : ''}` : 'not in a git checkout';
}

/** `Bucket bytes`, `25.0 MiB`. */
function settingFact(name: string, value: Json, declared: Parameter | undefined): [string, string] {
  const isBytes = name.endsWith('Bytes') && typeof value === 'number';
  return [titleOf(name, declared), isBytes ? formatBytes(value) : describeValue(value)];
}

export function ceilingFacts({
  matmulFlopsPerSecond,
  copyBytesPerSecond,
  spread,
}: Ceilings): [string, string][] {
  const products = dtypes.flatMap((dtype): [string, string][] => {
    const flops = matmulFlopsPerSecond[dtype];
    if (flops === undefined) return [];
    const rate = `${formatNumber(flops / 1e12, 3)} TFLOP/s`;
    return [[`Matrix product ceiling, ${dtype}`, rate + spreadText(spread?.matmulFlopsPerSecond[dtype])]];
  });
  const copies = `${formatNumber(copyBytesPerSecond / 1e9, 3)} GB/s${spreadText(spread?.copyBytesPerSecond)}`;
  return [...products, ['Copy ceiling', copies]];
}

function spreadText(spread: number | undefined): string {
  return spread === undefined
    ? ''
    : `, the best of several sizes and ways; its median run is ${formatPercent(spread)} below`;
}

/** What a device reports of itself: its label, and the unit of its value, where it has one. */
const properties: Readonly<Record<string, readonly [label: string, format?: (value: number) => string]>> = {
  memoryMiB: ['Device memory', (value) => formatBytes(value * 2 ** 20)],
  memoryBytes: ['Device memory', (value) => formatBytes(value)],
  l2MiB: ['L2 cache', (value) => formatBytes(value * 2 ** 20)],
  maxSharedKiBPerBlock: ['Shared memory of a block', (value) => formatBytes(value * 2 ** 10)],
  maxClockMHz: ['Highest clock', (value) => `${formatNumber(value)} MHz`],
  memoryClockMHz: ['Memory clock', (value) => `${formatNumber(value)} MHz`],
  memoryBusBits: ['Memory bus', (value) => `${formatNumber(value)} bits`],
  pciBusId: ['PCI bus'],
  driverCuda: ['CUDA of the driver'],
  onnxruntime: ['ONNX Runtime'],
};

export function propertyFacts(values: Readonly<Record<string, string | number>>): [string, string][] {
  return Object.entries(values).map(([name, value]) => {
    const [label, format] = (Object.hasOwn(properties, name) && properties[name]) || [
      capitalize(inWords(name)),
    ];
    return [label, format && typeof value === 'number' ? format(value) : String(value)];
  });
}
