import type { TrainingOutcome, TrainingProgress } from './training-run.ts';

/** What the ranks of a training report to the process that started them; rank 0 how it goes, any of them why it cannot. */
export type TrainRankEvent =
  | { readonly type: 'progressed'; readonly progress: TrainingProgress }
  | {
      readonly type: 'evaluated';
      readonly step: number;
      /** Null for what is not finite. */
      readonly validationLoss: number | null;
      readonly progress: TrainingProgress;
    }
  | { readonly type: 'ended'; readonly outcome: TrainingOutcome }
  | { readonly type: 'refused'; readonly isUsage: boolean; readonly message: string };
