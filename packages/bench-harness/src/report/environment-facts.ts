import { formatBytes, formatNumber, formatPercent, type Report } from '@roofline/reports';
import { dtypes, type Ceilings } from '../measuring/ceilings.ts';
import { describeValue } from '../records/describe-value.ts';
import type { CellRecord } from '../records/record.ts';

/** What a reader needs to judge the numbers, and to measure them again. */
export function environmentFacts({ environment, ceilings, settings }: CellRecord): Report['environment'] {
  const { device, system, git } = environment;
  const facts: [string, string | number][] = [
    ['Device', `${device.name} (${device.label})`],
    ...Object.entries(device.properties),
    ...(ceilings ? ceilingFacts(ceilings) : []),
    ['CPU', `${system.cpuModel}, ${system.cpuCores} cores`],
    ['Memory', formatBytes(system.memoryBytes)],
    ['System', `${system.platform} ${system.release} ${system.architecture}`],
    ['Node.js', environment.node],
    ...Object.entries(environment.packages),
    ['Commit', git ? `${git.commit}${git.dirty ? ', with changes' : ''}` : 'not in a git checkout'],
    ...Object.entries(environment.variables),
    ...Object.entries(settings).map(([name, value]): [string, string] => [name, describeValue(value)]),
  ];
  return facts.map(([label, value]) => ({ label, value: String(value) }));
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
