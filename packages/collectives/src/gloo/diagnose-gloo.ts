import { LibraryNotFoundError } from '@roofline/tensor-core';
import { glooLibrary, glooRemedy, shimPath } from './gloo-library.ts';

/** A line of `roofline doctor`. */
export interface BackendDiagnosis {
  readonly component: string;
  readonly status: 'found' | 'missing' | 'unusable';
  readonly detail: string;
  readonly path?: string;
  readonly remedy?: string;
}

/** Whether Gloo is here, and how to get it. Never throws. (`diagnose` of tensor-core tells of NCCL.) */
export function diagnoseGloo(): BackendDiagnosis {
  const component = 'libgloo';
  try {
    glooLibrary();
    return { component, status: 'found', detail: 'connects processes on CPUs', path: shimPath() };
  } catch (error) {
    const isMissing = error instanceof LibraryNotFoundError && error.cause === undefined;
    const detail = isMissing ? 'its shim has not been built' : (error as Error).message;
    return { component, status: isMissing ? 'missing' : 'unusable', detail, remedy: glooRemedy() };
  }
}
