import type { Block, RooflinePlot, Section } from '@roofline/reports';
import { describeCell, stepNames } from '../../e2e/parameters.ts';
import { cellSlug, lastStep, profiledOf, type ProfileMeasurement } from '../interpret.ts';
import { kernelKindsPlot } from './kernel-kinds.ts';
import { peerKernelTables } from './peer-tables.ts';
import type { Profiles } from './profile-table.ts';
import { kernelRoofline } from './roofline.ts';
import { workOf } from './summary.ts';
import { kernelTable, rangeTable } from './tables.ts';
import { stepTimeline } from './timeline.ts';

function rooflineOf(profile: ProfileMeasurement): RooflinePlot | null {
  return kernelRoofline(profile, `roofline-${cellSlug(profile.cell)}`);
}

/** The cell with the most work: its roofline comes first. */
function heaviest(profiles: Profiles): ProfileMeasurement | undefined {
  return profiles
    .filter((each) => rooflineOf(each) !== null)
    .sort((a, b) => workOf(a.cell) - workOf(b.cell))
    .at(-1);
}

/** The kernels of the heaviest cell under the roof; null where no roof is known. */
export function headline(profiles: Profiles): RooflinePlot | null {
  const charted = heaviest(profiles);
  const chart = charted ? rooflineOf(charted) : null;
  return chart && { ...chart, title: `${chart.title}: ${describeCell(charted!.cell)}` };
}

/** What a reader must know of how profiles were taken. */
export function profileNotes(profiles: Profiles): Block[] {
  const dropped = profiles
    .flatMap(({ result }) => result?.steps ?? [])
    .reduce((sum, { droppedRecords }) => sum + droppedRecords, 0);
  const texts = [
    ...(dropped > 0
      ? [`${dropped} records found no room and are missing: profile fewer steps at a time.`]
      : []),
    ...(profiles.some((profile) => profiledOf(profile)?.isOpByOp)
      ? [
          'On the CPU the ops of compiled steps ran one by one while they were profiled: only the plain steps ran compiled.',
        ]
      : []),
  ];
  return texts.map((text) => ({ kind: 'note', tone: 'warning', text }));
}

/** Where a page begins with a comparison, all rooflines are with their cells. */
function hasPeers(profiles: Profiles): boolean {
  return profiles.filter((profile) => profiledOf(profile)?.peer).length > 1;
}

/** The kernels of each cell: under the roof, by phase and kind, over time, by name and by range. */
export function cellSections(profiles: Profiles): Section[] {
  const names = stepNames(profiles);
  const charted = hasPeers(profiles) ? undefined : heaviest(profiles);
  return profiles.flatMap((profile): Section[] => {
    const { cell } = profile;
    const profiled = profiledOf(profile);
    if (profiled === null) return [];
    const slug = cellSlug(cell);
    const roofline = profile === charted ? null : rooflineOf(profile);
    const blocks = [
      ...(roofline ? [roofline] : []),
      ...kernelKindsPlot(profiled, `kinds-${slug}`),
      stepTimeline(lastStep(profiled.selected, profiled.result), `timeline-${slug}`, 'Timeline of one step'),
      kernelTable([profile], `kernels-${slug}`),
      ...peerKernelTables(profile, `pytorch-kernels-${slug}`),
      rangeTable([profile], `ranges-${slug}`),
    ];
    return [{ id: `profile-${slug}`, title: `Kernels of ${names.name(cell)}`, blocks }];
  });
}
