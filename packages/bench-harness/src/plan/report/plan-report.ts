import { formatBytes, formatDuration, formatNumber, formatPercent, type Report } from '@roofline/reports';
import { obstacles, possibleLayouts, type Plan, type PossibleLayout } from '../plan.ts';
import { byHandTables } from './by-hand-tables.ts';
import { takeoverPlots, timePlots, utilizationPlots } from './plots.ts';
import { boundTable, layoutTable, measuredTable, memoryTable, trafficTable } from './tables.ts';

/** The whole plan as a page; `createdAt` is that of what it is made of, or now. */
export function planReport(plan: Plan, createdAt: string): Report {
  const [best] = possibleLayouts(plan);
  const { size } = plan.request.model;
  const [chart, ...others] = [...takeoverPlots(plan), ...utilizationPlots(plan), ...timePlots(plan)];
  return {
    title: best ? claim(plan, best) : `${size} cannot be divided over ${plan.request.gpus} GPUs`,
    subtitle: `On paper, from what was measured of ${plan.planner.machine.name}`,
    createdAt,
    summary: findings(plan),
    ...(chart && { chart }),
    environment: environmentOf(plan),
    sections: [
      {
        id: 'plan',
        title: 'Layouts',
        blocks: [layoutTable(plan), memoryTable(plan), trafficTable(plan), ...notes(plan)],
      },
      { id: 'limits', title: 'Where communication takes over', blocks: [boundTable(plan), ...others] },
      ...paper(plan),
      {
        id: 'measured',
        title: 'Predicted beside measured',
        text: [howPredicted],
        blocks: [measuredTable(plan)],
      },
    ],
  };
}

/** No section for one device. */
function paper(plan: Plan): Report['sections'] {
  const blocks = byHandTables(plan);
  return blocks.length === 0 ? [] : [{ id: 'paper', title: 'With pencil and paper', blocks }];
}

const howPredicted =
  'Computation is a fixed time for each layer and the floor of the work times a factor, both fitted to the measured steps of one kind; ' +
  'a collective is its α and its bytes over the bus bandwidth. Eager steps of small models wait for the host, which no floor knows.';

function claim({ request, planner }: Plan, { layout, step, bound }: PossibleLayout): string {
  const { model, gpus } = request;
  const devices = `${formatNumber(gpus)} × ${planner.machine.name}`;
  const main = `${model.size} on ${devices}: ${layout.name} takes ${formatDuration(step.stepMs)} a step, at ${formatPercent(step.utilization)} of the ceiling`;
  const { mostOfThisStep } = bound;
  if (!step.fits)
    return `${model.size} does not fit on ${devices}: ${layout.name}, the smallest, needs ${formatBytes(step.memory.peak)} of each`;
  if (gpus === 1 || mostOfThisStep === null) return main;
  return `${main}; communication takes over beyond ${formatNumber(mostOfThisStep)} GPUs`;
}

/** What was found, one sentence each. */
export function findings(plan: Plan): string[] {
  const possible = possibleLayouts(plan);
  const [best, second] = possible;
  if (!best) return obstacles(plan);
  const { step, layout, bound } = best;
  const passMs = step.computation.forwardMs + step.computation.backwardMs;
  const missing = possible.filter(({ step }) => !step.fits);
  const fits = step.fits ? 'The fastest that fits' : 'None fits; the smallest';
  return [
    `${fits} is **${layout.name}**: ${formatDuration(step.stepMs)} a step and ${formatBytes(step.memory.peak)} of ` +
      `${formatBytes(plan.planner.machine.memoryBytes)} on each GPU.`,
    ...(second?.step.fits
      ? [
          `Next comes ${second.layout.name} with ${formatDuration(second.step.stepMs)} and ${formatBytes(second.step.memory.peak)}.`,
        ]
      : []),
    ...(bound.leastTokens === null
      ? []
      : [
          `Its communication takes ${formatDuration(step.communicationMs)}, forward and backward ${formatDuration(passMs)}: computation is the bound ` +
            `while each GPU has at least ${formatNumber(bound.leastTokens)} tokens.`,
        ]),
    ...(step.fits ? missing : missing.slice(1)).map(
      ({ layout, step }) => `No room for ${layout.name}: ${formatBytes(step.memory.peak)} of each GPU.`,
    ),
    ...accuracy(plan),
  ];
}

/** How far predictions lie from what was measured, one rank and several apart. */
function accuracy({ measured, setting }: Plan): string[] {
  const isAlike = ({ measured: step }: Plan['measured'][number]) =>
    step.dtype === setting.dtype &&
    step.attention === setting.attention &&
    step.execution === setting.execution;
  const groups = [
    [
      'steps of this kind on one device',
      measured.filter((each) => isAlike(each) && each.measured.ranks === 1),
    ],
    ['steps of several ranks', measured.filter(({ measured: step }) => step.ranks > 1)],
  ] as const;
  return groups.flatMap(([what, steps]) => {
    if (steps.length === 0) return [];
    const ratios = steps.map(({ measured: step, plan }) => plan.stepMs / step.stepMs);
    const [least, most] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => `${ratio.toFixed(2)}×`);
    return [
      `${steps.length} measured ${what}, each left out of what its own plan is fitted to, are predicted at ${least} to ${most} of their time ` +
        '([all](#beside-measured)).',
    ];
  });
}

function notes(plan: Plan): Report['sections'][number]['blocks'] {
  return obstacles(plan).map((text) => ({ kind: 'note', text }));
}

function environmentOf({
  planner: { machine, links, calibration, interference },
}: Plan): Report['environment'] {
  const gigabytes = (bytesPerSecond: number) => `${formatNumber(bytesPerSecond / 1e9, 3)} GB/s`;
  const { copyBytesPerSecond, matmulFlopsPerSecond } = machine.ceilings;
  return [
    { label: 'Device', value: machine.name },
    ...Object.entries(matmulFlopsPerSecond).map(([dtype, flops]) => ({
      label: `Products in ${dtype}`,
      value: `${formatNumber(flops / 1e12, 3)} TFLOP/s`,
    })),
    { label: 'Copies', value: gigabytes(copyBytesPerSecond) },
    ...links.inside.map(({ ranks, latencyMs, busBytesPerSecond }) => ({
      label: `Collectives of ${ranks} ranks`,
      value: `${formatDuration(latencyMs)} and ${gigabytes(busBytesPerSecond)} on the bus`,
    })),
    {
      label: 'Computation',
      value: `${formatDuration(calibration.perLayerMs)} a layer and ${formatNumber(calibration.overFloor, 3)} of the floor, by ${calibration.steps} measured steps`,
    },
    {
      label: 'Hidden communication slows computation by',
      value: `${formatPercent(interference)} of its time`,
    },
  ];
}
