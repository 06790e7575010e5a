import { availableParallelism } from 'node:os';
import { askedPeer, peerChoice } from '../../cli/flags/peer-flag.ts';
import { ranksDeviceFlag } from '../../cli/flags/device-flag.ts';
import { settingFlagsOf, settingsBy, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import { parseList, parsePositiveNumber, single } from '../../cli/option-values.ts';
import { chooseBackend, requireBackend } from '../../device/require-backend.ts';
import { UsageError } from '../../errors.ts';
import { combinations } from '../../parameters/cell-schema.ts';
import { benchmarkCommand } from '../benchmark-command.ts';
import { type CollectiveShape, pieceCount } from './operations.ts';
import {
  type CollectiveBackend,
  collectiveParameters,
  collectiveSettingParameters,
  worldSizes,
} from './parameters.ts';
import { parseSize, sizesBetween } from './sizes.ts';

const sizeOf = (flag: string) => (given: string | readonly string[]) => parseSize(flag, single(flag, given));
const sizesOf = (flag: string) => {
  const parse = parseList(flag);
  return (given: string | readonly string[]) => parse(given).map((text) => parseSize(flag, text));
};
const defaultSizes = [1e6, 1e7, 1e8, 1e9];

export const allreduceCommand = benchmarkCommand('allreduce', {
  flags: {
    ...sweptFlagsOf(collectiveParameters),
    size: {
      type: 'string',
      describe: '1MB,10MB,100MB,1GB if not given; of all pieces together, as in nccl-tests',
      coerce: sizesOf('size'),
    },
    begin: { type: 'string', alias: 'b', describe: 'Sizes from this one on', coerce: sizeOf('begin') },
    end: { type: 'string', alias: 'e', describe: 'to this one', coerce: sizeOf('end') },
    factor: {
      type: 'string',
      alias: 'f',
      describe: 'each so many times the one before; 2 if not given',
      coerce: parsePositiveNumber('factor'),
    },
    ...settingFlagsOf(collectiveSettingParameters),
    peer: {
      ...peerChoice,
      describe: 'Time torch.distributed with the same backend in turn (Python by ROOFLINE_PYTHON)',
    },
    ...ranksDeviceFlag,
  },
  examples: [
    ['roofline allreduce', 'sizes up to 1 GB, between GPUs or, by Gloo, between processes'],
    ['roofline allreduce --backend gloo --nproc 2 --size 1MB,10MB --peer torch', "next to PyTorch's Gloo"],
    ['roofline allreduce --op allgather,reducescatter -b 8 -e 128M -f 2', "nccl-tests' sweep"],
  ],
  load: async () => (await import('./benchmark.ts')).allreduceBenchmark,
  async plan(args) {
    const bytes = chooseSizes(args);
    const swept = sweptBy(collectiveParameters, args);
    const backend = await chooseBackends(swept, args.device);
    const onGpu = backend.includes('nccl');
    const ranks = swept.ranks ?? ranksFor(onGpu ? await countGpus() : availableParallelism());
    const cells = { ...swept, backend, ranks, bytes };
    checkElements(cells);
    for (const each of backend) await requireBackend(each);
    const peer = await askedPeer(args);
    const usual = onGpu ? { warmup: 5, iterations: 20 } : { warmup: 1, iterations: 4 };
    const settings = { ...usual, ...settingsBy(collectiveSettingParameters, args) };
    return {
      parameters: () => ({ ...cells, ...settings, peer }),
      device: onGpu ? 'cuda' : 'cpu',
      dtypes: null,
    };
  },
});

/** The backends that are given, which must go with the device, else the one that goes with it. */
async function chooseBackends(
  swept: { readonly backend?: readonly CollectiveBackend[]; readonly ranks?: readonly number[] },
  device: string,
): Promise<CollectiveBackend[]> {
  const ranks = swept.ranks ? Math.max(...swept.ranks) : null;
  const given = swept.backend ?? [undefined];
  return await Promise.all(given.map((each) => chooseBackend({ given: each, device, ranks })));
}

/** Throws a UsageError for cells whose sizes leave a rank without an element. */
function checkElements(swept: {
  readonly [K in keyof CollectiveShape]: readonly CollectiveShape[K][];
}): void {
  const { op: ops, dtype: dtypes, ranks: counts, bytes: sizes } = swept;
  const shapes = combinations({ op: ops, dtype: dtypes, ranks: counts, bytes: sizes });
  const empty = shapes.find((shape) => pieceCount(shape) === 0);
  if (empty === undefined) return;
  const { op, bytes, ranks, dtype } = empty;
  throw new UsageError(
    `${op} of ${bytes} bytes over ${ranks} ranks leaves no element of ${dtype} for each: take larger sizes.`,
  );
}

function chooseSizes({
  size,
  begin,
  end,
  factor,
}: Partial<Readonly<Record<'begin' | 'end' | 'factor', number>> & { size: number[] }>): number[] {
  if (begin === undefined && end === undefined) {
    if (factor !== undefined) throw new UsageError('--factor stands between --begin and --end: add both.');
    return size ?? defaultSizes;
  }
  if (size !== undefined)
    throw new UsageError('--size names the sizes already: leave out --begin and --end.');
  if (begin === undefined || end === undefined)
    throw new UsageError('--begin and --end go together: add the other.');
  return sizesBetween(begin, end, factor ?? 2);
}

/** The usual numbers of ranks as far as there are places for them; two at least. */
function ranksFor(places: number): number[] {
  const fitting = worldSizes.filter((ranks) => ranks <= places);
  return fitting.length > 0 ? fitting : [2];
}

async function countGpus(): Promise<number> {
  const { cudaDeviceCount } = await import('@roofline/tensor-core');
  return cudaDeviceCount();
}
