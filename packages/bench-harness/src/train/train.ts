import { formatNumber, formatPercent } from '@roofline/reports';
import { printJson, printLine, tell } from '../cli/output.ts';
import { tellSentence } from '../cli/print-sentence.ts';
import { ProgressDisplay } from '../cli/progress.ts';
import { shellWord } from '../shell-word.ts';
import { EXIT } from '../errors.ts';
import { writeReport } from '../report/write-report.ts';
import { DivergenceError } from './loss-watch.ts';
import type { PreparedTraining } from './prepare.ts';
import { checkpointsIn } from './run-folder.ts';
import { readTrainLog } from './train-log.ts';
import { trainOnRanks } from './train-on-ranks.ts';
import { summarize, trainReport } from './train-report.ts';
import { runTraining, type TrainingOutcome, type TrainingProgress } from './training-run.ts';

/** Trains, shows how it goes, and writes the report. Gives the exit code. */
export async function train(
  training: PreparedTraining,
  { signal, json }: { readonly signal: AbortSignal; readonly json: boolean },
): Promise<number> {
  const { settings, folder, environment } = training;
  const startedMs = performance.now();
  let utilization: number | null = null;
  using progress = new ProgressDisplay();
  progress.status('Training, step', training.checkpoint?.step ?? 0, settings.steps);
  const observer = {
    progressed: (now: TrainingProgress) => {
      utilization = now.utilization;
      progress.status(
        'Training, step',
        now.step,
        settings.steps,
        ` · loss ${now.loss.toFixed(3)} · ${paceOf(now)}`,
      );
    },
    evaluated: (step: number, validationLoss: number, now: TrainingProgress) =>
      progress.line(
        `step ${step}: loss ${now.loss.toFixed(3)}, validation ${validationLoss.toFixed(3)}, ${paceOf(now)}`,
      ),
  };
  let outcome: TrainingOutcome | DivergenceError;
  try {
    const { label: deviceLabel } = environment.device;
    outcome = training.backend
      ? await trainOnRanks(training, training.backend, observer)
      : await runTraining({ ...training, group: null, deviceLabel, signal, observer });
  } catch (error) {
    progress.clear();
    if (!(error instanceof DivergenceError)) {
      tellLastCheckpoint(folder);
      throw error;
    }
    outcome = error;
  }
  progress.clear();
  const lines = readTrainLog(folder);
  const summary = summarize(lines, settings);
  const createdAt = new Date().toISOString();
  const report = trainReport(lines, settings, environment, utilization, createdAt);
  const { html } = await writeReport(report, folder);
  if (outcome instanceof DivergenceError) {
    tellSentence(`roofline: ${outcome.message} The training has stopped, and nothing of it was saved.`);
    tellLastCheckpoint(folder);
    return EXIT.failure;
  }
  const { isFinished, step, checkpoint } = outcome;
  const wallMs = performance.now() - startedMs;
  if (json) {
    printJson({ ...{ folder, checkpoint, report: html, isFinished, ...summary, utilization, wallMs }, step });
    return isFinished ? EXIT.ok : EXIT.interrupted;
  }
  if (!isFinished) tell(`Interrupted after step ${step}. ${goOnBy(folder)}`);
  printLine(`${report.title}.`);
  printLine(`Checkpoint: ${checkpoint}`);
  printLine(`Report: ${html}`);
  return isFinished ? EXIT.ok : EXIT.interrupted;
}

function paceOf({ tokensPerSecond, utilization }: TrainingProgress): string {
  const roof = utilization === null ? '' : ` · ${formatPercent(utilization)} of the roof`;
  return `${formatNumber(tokensPerSecond, 3)} tokens/s${roof}`;
}

function tellLastCheckpoint(folder: string): void {
  const [newest] = checkpointsIn(folder);
  if (newest === undefined) return;
  tellSentence(`The checkpoint of step ${newest.step}, ${newest.path}, is whole. ${goOnBy(folder)}`);
}

function goOnBy(folder: string): string {
  return `\`roofline train --resume ${shellWord(folder)}\` goes on.`;
}
