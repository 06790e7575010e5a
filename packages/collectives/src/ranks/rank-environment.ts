import { RooflineError, checkCount, checkObject, checkOptions, checkText } from '@roofline/tensor-core';
import { parseHostAndPort } from './host-and-port.ts';

/** A process's place among those that work together. */
export interface RankEnvironment {
  readonly rank: number;
  readonly worldSize: number;
  /** Among the ranks of this machine: which GPU to take. */
  readonly localRank: number;
  /** Where the store is. */
  readonly storeHost: string;
  readonly storePort: number;
  /** Whether rank 0 hosts it; else a launcher does. */
  readonly hostsStore: boolean;
  readonly token: string;
  /** Where the ranks were read from. */
  readonly source: 'options' | 'torchrun' | 'slurm' | 'openmpi';
}

/** What is given here takes precedence over the environment. */
export interface RankOptions {
  readonly rank?: number;
  readonly worldSize?: number;
  readonly localRank?: number;
  readonly masterAddress?: string;
  readonly masterPort?: number;
  /** The store's token; empty for none. */
  readonly token?: string;
}

export const rankOptionNames: readonly (keyof RankOptions)[] = [
  'rank',
  'worldSize',
  'localRank',
  'masterAddress',
  'masterPort',
  'token',
];

type Variables = Readonly<Record<string, string | undefined>>;

interface Convention {
  readonly source: 'torchrun' | 'slurm' | 'openmpi';
  readonly rank: string;
  readonly worldSize: string;
  readonly localRank: string;
}

/** Highest precedence first: torchrun's names are also what people set by hand, inside a Slurm job for example. */
const conventions: readonly Convention[] = [
  { source: 'torchrun', rank: 'RANK', worldSize: 'WORLD_SIZE', localRank: 'LOCAL_RANK' },
  {
    source: 'openmpi',
    rank: 'OMPI_COMM_WORLD_RANK',
    worldSize: 'OMPI_COMM_WORLD_SIZE',
    localRank: 'OMPI_COMM_WORLD_LOCAL_RANK',
  },
  { source: 'slurm', rank: 'SLURM_PROCID', worldSize: 'SLURM_NTASKS', localRank: 'SLURM_LOCALID' },
];

/**
 * The ranks as torchrun (RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT), Open MPI's mpirun or Slurm's srun
 * name them, or as the options say. Slurm and Open MPI have no port: without MASTER_PORT it follows from the job's
 * number; the address is then that of the job's first node, or of Open MPI's launching host where it says so.
 * Throws a RooflineError (code RANKS) that names what is missing or makes no sense.
 */
export function rankEnvironment(
  options: RankOptions = {},
  variables: Variables = process.env,
): RankEnvironment {
  checkRankOptions(options);
  checkObject('rankEnvironment', 'the environment', variables);
  const convention =
    conventions.find((names) => isSet(variables[names.rank])) ??
    conventions.find((names) => isSet(variables[names.worldSize]));
  const numbers = ranksOf(options, convention, variables);
  const store = storeOf(options, variables);
  const token = options.token ?? variables.ROOFLINE_STORE_TOKEN ?? '';
  const isWhole = options.rank !== undefined && options.worldSize !== undefined;
  return { ...numbers, ...store, token, source: isWhole ? 'options' : convention!.source };
}

function ranksOf(
  options: RankOptions,
  convention: Convention | undefined,
  variables: Variables,
): Pick<RankEnvironment, 'rank' | 'worldSize' | 'localRank'> {
  const numberOf = (option: 'rank' | 'worldSize' | 'localRank'): number | null => {
    const given = options[option];
    if (given !== undefined) return given;
    return convention ? numberIn(variables, convention[option]) : null;
  };
  const [rank, worldSize] = [numberOf('rank'), numberOf('worldSize')];
  if (rank === null || worldSize === null) throw missingRanks(rank, worldSize, convention);
  if (worldSize < 1 || rank >= worldSize)
    throw ranksError(`rank ${rank} of a world of ${worldSize} makes no sense; ranks count from 0.`);
  // One machine, unless something says otherwise.
  return { rank, worldSize, localRank: numberOf('localRank') ?? rank };
}

function missingRanks(
  rank: number | null,
  worldSize: number | null,
  { rank: rankName, worldSize: sizeName }: Convention = conventions[0]!,
): RooflineError {
  const missing = [rank === null ? rankName : null, worldSize === null ? sizeName : null].filter(
    (name) => name !== null,
  );
  return ranksError(
    `${missing.join(' and ')} ${missing.length > 1 ? 'are' : 'is'} not set; start this with launch(), roofline-launch, ` +
      'torchrun, srun or mpirun, or give { rank, worldSize }.',
  );
}

function storeOf(
  options: RankOptions,
  variables: Variables,
): Pick<RankEnvironment, 'storeHost' | 'storePort' | 'hostsStore'> {
  const isGiven = options.masterAddress !== undefined || options.masterPort !== undefined;
  if (!isGiven && isSet(variables.ROOFLINE_STORE)) return launchersStore(variables.ROOFLINE_STORE);
  const storeHost = options.masterAddress ?? masterAddressIn(variables);
  return { storeHost, storePort: options.masterPort ?? masterPortIn(variables), hostsStore: true };
}

function launchersStore(text: string): Pick<RankEnvironment, 'storeHost' | 'storePort' | 'hostsStore'> {
  const place = parseHostAndPort(text);
  if (place === null)
    throw ranksError(`ROOFLINE_STORE is "${text}", not a host and a port such as 10.0.0.1:29500.`);
  return { storeHost: place.host, storePort: place.port, hostsStore: false };
}

function masterAddressIn(variables: Variables): string {
  const { MASTER_ADDR, SLURM_JOB_NODELIST, SLURM_STEP_NODELIST, SLURM_LAUNCH_NODE_IPADDR } = variables;
  if (isSet(MASTER_ADDR)) return MASTER_ADDR;
  const nodes = SLURM_STEP_NODELIST ?? SLURM_JOB_NODELIST;
  if (isSet(nodes)) return firstNode(nodes);
  if (isSet(SLURM_LAUNCH_NODE_IPADDR)) return SLURM_LAUNCH_NODE_IPADDR;
  // Open MPI says how many of the ranks are on this machine: all of them need no network.
  if (
    isSet(variables.OMPI_COMM_WORLD_SIZE) &&
    variables.OMPI_COMM_WORLD_SIZE === variables.OMPI_COMM_WORLD_LOCAL_SIZE
  )
    return '127.0.0.1';
  throw ranksError(
    'MASTER_ADDR is not set: set it to the address of the machine of rank 0, on all ranks, or give { masterAddress }.',
  );
}

/** The first of Slurm's list of nodes, such as `gpu[03-05,9],login`. */
export function firstNode(list: string): string {
  const [, prefix, ranges] = /^([^[,]+)(?:\[([^\]]+)\])?/.exec(list) ?? [];
  if (prefix === undefined)
    throw ranksError(`Slurm's list of nodes "${list}" cannot be read; set MASTER_ADDR.`);
  return prefix + (ranges?.split(/[-,]/)[0] ?? '');
}

function masterPortIn(variables: Variables): number {
  const port = numberIn(variables, 'MASTER_PORT');
  if (port !== null) {
    checkCommonPort('MASTER_PORT', port);
    // torchrun may host PyTorch's own store at the port, and says so.
    return variables.TORCHELASTIC_USE_AGENT_STORE === 'True' ? port + 1 : port;
  }
  const job = /\d+/.exec(variables.SLURM_JOB_ID ?? variables.OMPI_MCA_ess_base_jobid ?? '');
  if (job) return firstJobPort + (Number(job[0]) % jobPorts);
  throw ranksError(
    'MASTER_PORT is not set: set it to one free port, the same on all ranks, or give { masterPort }.',
  );
}

/** Ports that jobs without one share by their number: below those that systems hand out. */
const firstJobPort = 20000;
const jobPorts = 10000;

function numberIn(variables: Variables, name: string): number | null {
  const text = variables[name];
  if (!isSet(text)) return null;
  if (!/^\d{1,9}$/.test(text)) throw ranksError(`${name} is "${text}", not a whole number.`);
  return Number(text);
}

/** Throws for what is not a port, and for 0, which means any free one: the other ranks could not know it. */
function checkCommonPort(name: string, port: number): void {
  if (port < 1 || port > 65535)
    throw ranksError(`${name} is ${port}; ports that all ranks know are 1 to 65535.`);
}

function isSet(text: string | undefined): text is string {
  return text !== undefined && text !== '';
}

function ranksError(message: string): RooflineError {
  return new RooflineError('RANKS', `rankEnvironment: ${message}`);
}

function checkRankOptions(options: RankOptions): void {
  checkOptions('rankEnvironment', options, rankOptionNames);
  for (const name of ['rank', 'worldSize', 'localRank', 'masterPort'] as const) {
    const value = options[name];
    if (value !== undefined) checkCount('rankEnvironment', name, value, name === 'worldSize' ? 1 : 0);
  }
  if (options.masterPort !== undefined) checkCommonPort('masterPort', options.masterPort);
  if (options.masterAddress !== undefined)
    checkText('rankEnvironment', 'masterAddress', options.masterAddress);
  if (options.token !== undefined) checkText('rankEnvironment', 'token', options.token);
}
