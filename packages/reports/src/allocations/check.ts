import { ReportError } from '../model.ts';
import type { AllocationPlot } from '../model.ts';

/** @throws ReportError for sizes and times that cannot be drawn. */
export function checkAllocations({ id, allocations, reserved = [] }: AllocationPlot): void {
  for (const { label, bytes, startUs, endUs } of allocations) {
    const place = `allocations '${id}', '${label}'`;
    if (!(bytes >= 0 && Number.isFinite(bytes))) throw new ReportError(`${place}: bytes is ${bytes}`);
    if (!Number.isFinite(startUs)) throw new ReportError(`${place}: startUs is ${startUs}`);
    if (endUs !== null && !(endUs >= startUs && Number.isFinite(endUs))) {
      throw new ReportError(`${place}: endUs is ${endUs}, its start ${startUs}`);
    }
  }
  reserved.forEach(([timeUs, bytes], index) => {
    const place = `allocations '${id}', reserved point ${index}`;
    if (!Number.isFinite(timeUs) || !(bytes >= 0 && Number.isFinite(bytes))) {
      throw new ReportError(`${place}: (${timeUs}, ${bytes}) cannot be drawn`);
    }
    if (index > 0 && timeUs < reserved[index - 1]![0]) throw new ReportError(`${place}: goes back in time`);
  });
}
