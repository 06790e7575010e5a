import { availableParallelism } from 'node:os';

/** Cores that each rank of this machine may keep busy: what is set for all, else an even share. */
export function threadsOfRank(worldSize: number): number {
  const given = Number(process.env['ROOFLINE_CPU_THREADS']);
  return given > 0 ? given : Math.max(1, Math.floor(availableParallelism() / worldSize));
}
