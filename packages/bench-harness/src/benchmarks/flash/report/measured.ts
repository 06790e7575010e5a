import type { Row } from '@roofline/reports';
import { passTime, type PassTime } from '../../../attention/pass-time.ts';
import { torchAttentions } from '../../../attention/peer-kinds.ts';
import type { Pass } from '../../../attention/work.ts';
import { ratioOfMedians, summarize, type RatioEstimate } from '../../../measuring/statistics.ts';
import { outcomeOf } from '../../../report/declared-table.ts';
import { workedOut, type Measurement } from '../../../report/measurement.ts';
import { flashSettings, type FlashCell } from '../parameters.ts';
import type { FlashResult, Timed } from '../result.ts';

export type FlashMeasurement = Measurement<FlashCell, FlashResult>;
type Cells = readonly FlashMeasurement[];

/** One attention in one pass of one cell; of a cell without a result, none. */
export interface TimedPass extends FlashMeasurement {
  readonly pass: Pass;
  readonly timed: Timed | null;
  readonly outcome: Pick<Row, 'status' | 'error'>;
}

/** One that was timed. */
export type MeasuredPass = TimedPass & { readonly timed: Timed };

/** All attentions and passes; a cell without a result is there once for each pass. */
export const timedPasses = workedOut((cells: Cells): TimedPass[] => {
  return cells.flatMap((each): TimedPass[] => {
    const { record, result } = each;
    const { passes } = flashSettings.parse(record.settings);
    if (result === null) {
      return passes.map((pass) => ({ ...each, pass, timed: null, outcome: outcomeOf(record) }));
    }
    return passes.flatMap((pass) =>
      result.timed.map((timed) => ({ ...each, pass, timed, outcome: outcomeOfTimed(timed) })),
    );
  });
});

function outcomeOfTimed({ outcome }: Timed): TimedPass['outcome'] {
  return outcome.status === 'ok' ? { status: 'ok' } : { status: outcome.status, error: outcome.reason };
}

export function measuredPasses(passes: readonly TimedPass[]): MeasuredPass[] {
  return passes.filter((each): each is MeasuredPass => timeOf(each) !== null);
}

/** Null for an attention without samples of the pass. */
export const timeOf = workedOut(({ cell, pass, timed, record }: TimedPass): PassTime | null => {
  const samplesMs = samplesOf(timed, pass);
  return samplesMs && passTime(cell, pass, samplesMs, record);
});

function samplesOf(timed: Timed | null | undefined, pass: Pass): readonly number[] | null {
  return timed?.outcome.status === 'ok' ? (timed.outcome.samplesMs[pass] ?? null) : null;
}

/** Samples of another attention of the same cell and pass. */
function samplesBeside({ result, pass }: TimedPass, side: Timed['side'], attention: string) {
  const other = result?.timed.find((each) => each.side === side && each.attention === attention);
  return samplesOf(other, pass);
}

/** The median of plain attention of the same side over this one; null where that was not measured. */
export function overPlain(each: MeasuredPass): number | null {
  const [plain, own] = [samplesBeside(each, each.timed.side, 'plain'), timeOf(each)];
  return plain && own && summarize(plain).median / own.time.median;
}

/** Of our flash attention's median to this one, of PyTorch; null for ours, and where ours was not measured. */
export const overFlash = workedOut((each: MeasuredPass): RatioEstimate | null => {
  const [flash, own] = [samplesBeside(each, 'ours', 'flash'), timeOf(each)];
  return each.timed.side === 'torch' && flash && own ? ratioOfMedians(flash, own.samplesMs) : null;
});

/** As tables name it: `flash`, `PyTorch cuDNN`. */
export function nameOf({ timed }: MeasuredPass): string {
  return timed.side === 'ours' ? timed.attention : torchAttentions[timed.attention];
}

/** The passes that were asked for. */
export function passesOf(passes: readonly TimedPass[]): Pass[] {
  return [...new Set(passes.map(({ pass }) => pass))];
}
