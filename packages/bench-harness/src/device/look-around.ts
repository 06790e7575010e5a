import { UsageError } from '../errors.ts';
import { peerTitles, type PeerName } from '../peer/kinds.ts';
import { readSlowdowns } from '../records/cpu-slowdowns.ts';
import type { DiagnosisEntry, ProbeResult } from './diagnosis.ts';
import { probeDevice } from './prepare-device.ts';

/** What `roofline doctor` finds besides what a device needs: PyTorch and JAX are peers to measure against, not needs. */
export interface Surroundings extends ProbeResult {
  readonly torch: DiagnosisEntry;
  readonly jax: DiagnosisEntry;
}

/** Looks for everything at once. What cannot be looked at is an entry as well, and hides nothing of the others. */
export async function lookAround(spec: string): Promise<Surroundings> {
  const [probe, gloo, torch, jax] = await Promise.all([
    findDevices(spec),
    findGloo(),
    findPeer('torch'),
    findPeer('jax'),
  ]);
  return { ...probe, diagnosis: [...probe.diagnosis, gloo, findSlowdowns()], torch, jax };
}

/** The entry of a component whose finding failed. */
export function unusable(component: string, error: unknown): DiagnosisEntry {
  return { component, status: 'unusable', detail: error instanceof Error ? error.message : String(error) };
}

/** Without a signal, a probe is not interrupted. */
async function findDevices(spec: string): Promise<ProbeResult> {
  try {
    return (await probeDevice(spec))!;
  } catch (error) {
    const entry = unusable('devices', error);
    return { device: null, problem: entry.detail, diagnosis: [entry] };
  }
}

/** Gloo connects processes that use CPUs; it is no need either. */
async function findGloo(): Promise<DiagnosisEntry> {
  try {
    const { diagnoseGloo } = await import('@roofline/collectives');
    return diagnoseGloo();
  } catch (error) {
    return unusable('libgloo', error);
  }
}

/** Where heat slows the CPU down, Linux counts it; nothing needs that, but records do not say it without. */
function findSlowdowns(): DiagnosisEntry {
  const component = 'CPU slowdowns';
  const detail = 'say when heat held the clocks of the CPU down';
  if (readSlowdowns() !== null) return { component, status: 'found', detail };
  const remedy =
    'Linux counts them on Intel CPUs, outside of virtual machines; elsewhere records do not say it.';
  return { component, status: 'missing', detail, remedy };
}

async function findPeer(name: PeerName): Promise<DiagnosisEntry> {
  const title = peerTitles[name];
  const component = `Python with ${title}`;
  const detail = `measures against ${title}, by --peer ${name}`;
  try {
    const { findPython } = await import('../peer/find-python.ts');
    const { executable, versions } = await findPython([name]);
    return { component, status: 'found', version: versions[0]!, detail, path: executable };
  } catch (error) {
    if (!(error instanceof UsageError)) return unusable(component, error);
    return { component, status: 'missing', detail, remedy: error.message };
  }
}
