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

/** Whether Gloo is here, and how to get it. Never throws. (`diagnose` of tensor-core reports on NCCL.) */
export function diagnoseGloo(): BackendDiagnosis {
  const component = 'libgloo';
  try {
    glooLibrary();
    return { component, status: 'found', detail: 'connects processes on CPUs', path: shimPath() };
  } catch (error) {
    // Where the package's own folder is lost, building is no remedy.
    if (!(error instanceof LibraryNotFoundError))
      return { component, status: 'unusable', detail: (error as Error).message };
    const remedy = glooRemedy();
    return error.cause instanceof Error
      ? { component, status: 'unusable', detail: error.cause.message, remedy }
      : { component, status: 'missing', detail: 'its shim has not been built', remedy };
  }
}
