import type { Row } from '@roofline/reports';
import type { Answer } from './answer.ts';

/** In full sizes, as a GPU measures them, or what two cores of a CPU manage in a quarter of an hour. */
export const studyForms = ['full', 'quick'] as const;
export type StudyForm = (typeof studyForms)[number];

/** One command of a study, in the words after `roofline`. */
export interface StudyRun {
  /** The folder of its records, and what the names of its figures begin with. */
  readonly name: string;
  /** Null where a form does without it. */
  readonly words: { readonly [Form in StudyForm]: string | null };
  /**
   * Expected of a cell, its process included, until some of its cells were measured: on an H200, by its records less what cells of one
   * process share, and on two CPU cores.
   */
  readonly secondsPerCell: { readonly [Form in StudyForm]: number };
  /** 1 is measured first where time is short. */
  readonly wanted: 1 | 2 | 3;
  /** GPUs that its ranks need in full; none if not given. */
  readonly gpus?: number;
  /** The tables and drawings of its report that the study shows, by the beginning of their ids. */
  readonly shows: readonly string[];
}

/** One problem of the assignment: what is asked, what measures it, and how the numbers answer. */
export interface Problem {
  /** That of the handout: `benchmarking_script`. */
  readonly id: string;
  readonly title: string;
  /** In our own words. */
  readonly question: string;
  readonly runs: readonly StudyRun[];
  /** Drawings of the records of all its runs together, which are of one benchmark, by the beginning of their ids. */
  readonly together?: readonly string[];
  /** In the order in which they are said. */
  readonly answers: readonly Answer[];
}

/** Rows by `RUN/TABLE`. */
export type StudyRows = ReadonlyMap<string, readonly Row[]>;
