import { RooflineError } from '@roofline/tensor-core';
import { describe, expect, it } from 'vitest';
import { firstNode, rankEnvironment } from '../src/ranks/rank-environment.ts';

const torchrun = {
  RANK: '3',
  WORLD_SIZE: '8',
  LOCAL_RANK: '1',
  MASTER_ADDR: '10.0.0.1',
  MASTER_PORT: '29500',
};

describe('the ranks of', () => {
  it('torchrun', () => {
    expect(rankEnvironment({}, torchrun)).toEqual({
      rank: 3,
      worldSize: 8,
      localRank: 1,
      storeHost: '10.0.0.1',
      storePort: 29500,
      hostsStore: true,
      token: '',
      source: 'torchrun',
    });
  });

  it("torchrun whose agent has PyTorch's store at the port: the next", () => {
    const agent = { ...torchrun, TORCHELASTIC_USE_AGENT_STORE: 'True' };
    expect(rankEnvironment({}, agent).storePort).toBe(29501);
    expect(rankEnvironment({}, { ...agent, TORCHELASTIC_USE_AGENT_STORE: 'False' }).storePort).toBe(29500);
  });

  it('srun, with a port that follows from the job', () => {
    const slurm = {
      SLURM_PROCID: '5',
      SLURM_NTASKS: '6',
      SLURM_LOCALID: '2',
      SLURM_STEP_NODELIST: 'gpu[03-05,9]',
      SLURM_JOB_ID: '1234567',
    };
    expect(rankEnvironment({}, slurm)).toMatchObject({
      rank: 5,
      worldSize: 6,
      localRank: 2,
      storeHost: 'gpu03',
      storePort: 20000 + 4567,
      source: 'slurm',
    });
    expect(rankEnvironment({}, { ...slurm, MASTER_ADDR: 'n1', MASTER_PORT: '7' })).toMatchObject({
      storeHost: 'n1',
      storePort: 7,
    });
  });

  it('mpirun on one machine, without an address', () => {
    const openmpi = {
      OMPI_COMM_WORLD_RANK: '1',
      OMPI_COMM_WORLD_SIZE: '2',
      OMPI_COMM_WORLD_LOCAL_RANK: '1',
      OMPI_COMM_WORLD_LOCAL_SIZE: '2',
      OMPI_MCA_ess_base_jobid: '3871014913',
    };
    expect(rankEnvironment({}, openmpi)).toMatchObject({
      rank: 1,
      worldSize: 2,
      localRank: 1,
      storeHost: '127.0.0.1',
      storePort: 20000 + 4913,
      source: 'openmpi',
    });
    expect(() => rankEnvironment({}, { ...openmpi, OMPI_COMM_WORLD_LOCAL_SIZE: '1' })).toThrow(
      'MASTER_ADDR is not set',
    );
  });

  it('mpirun inside a Slurm job', () => {
    const both = {
      SLURM_PROCID: '0',
      SLURM_NTASKS: '1',
      OMPI_COMM_WORLD_RANK: '2',
      OMPI_COMM_WORLD_SIZE: '4',
      MASTER_ADDR: 'a',
      MASTER_PORT: '1',
    };
    expect(rankEnvironment({}, both)).toMatchObject({ rank: 2, worldSize: 4, source: 'openmpi' });
  });

  it('options, which take precedence over the environment', () => {
    const options = { rank: 1, worldSize: 2, masterAddress: 'h', masterPort: 9, token: 't' };
    expect(rankEnvironment(options, {})).toEqual({
      rank: 1,
      worldSize: 2,
      localRank: 1,
      storeHost: 'h',
      storePort: 9,
      hostsStore: true,
      token: 't',
      source: 'options',
    });
    expect(rankEnvironment({ ...options, localRank: 0 }, torchrun)).toMatchObject({
      rank: 1,
      worldSize: 2,
      localRank: 0,
    });
    expect(rankEnvironment({ masterPort: 5 }, torchrun)).toMatchObject({ rank: 3, storePort: 5 });
  });

  it('a launcher that hosts the store', () => {
    const launched = { ...torchrun, ROOFLINE_STORE: '[fd00::2]:4000', ROOFLINE_STORE_TOKEN: 's' };
    expect(rankEnvironment({}, launched)).toMatchObject({
      storeHost: 'fd00::2',
      storePort: 4000,
      hostsStore: false,
      token: 's',
    });
    expect(rankEnvironment({ token: '' }, launched).token).toBe('');
  });
});

describe('what is missing is named', () => {
  it.each([
    [{}, 'RANK and WORLD_SIZE are not set'],
    [{ ...torchrun, RANK: undefined }, 'RANK is not set'],
    [{ ...torchrun, WORLD_SIZE: undefined }, 'WORLD_SIZE is not set'],
    [{ ...torchrun, MASTER_ADDR: undefined }, 'MASTER_ADDR is not set'],
    [{ ...torchrun, MASTER_ADDR: '' }, 'MASTER_ADDR is not set'],
    [{ ...torchrun, MASTER_PORT: undefined }, 'MASTER_PORT is not set'],
    [{ ...torchrun, MASTER_PORT: '99999' }, 'MASTER_PORT is 99999'],
    [{ ...torchrun, MASTER_PORT: '0' }, 'MASTER_PORT is 0; ports that all ranks know are 1 to 65535'],
    [{ ...torchrun, RANK: '-1' }, 'RANK is "-1", not a whole number'],
    [{ ...torchrun, WORLD_SIZE: '1e3' }, 'WORLD_SIZE is "1e3", not a whole number'],
    [{ ...torchrun, RANK: '8' }, 'rank 8 of a world of 8 makes no sense'],
    [{ ...torchrun, WORLD_SIZE: '0' }, 'rank 3 of a world of 0'],
    [{ ...torchrun, ROOFLINE_STORE: 'nowhere' }, 'ROOFLINE_STORE is "nowhere"'],
    [{ SLURM_PROCID: '0' }, 'SLURM_NTASKS is not set'],
  ])('%j', (variables: Record<string, string | undefined>, message) => {
    expect(() => rankEnvironment({}, variables)).toThrow(RooflineError);
    expect(() => rankEnvironment({}, variables)).toThrow(message);
  });

  it('RANK missing, though WORLD_SIZE is given', () => {
    expect(() => rankEnvironment({ worldSize: 2 }, {})).toThrow('RANK is not set');
  });
});

it("reads the first of Slurm's nodes", () => {
  expect(['n1', 'n1,n2', 'gpu[03-05,9],login', 'a-b[7]'].map(firstNode)).toEqual([
    'n1',
    'n1',
    'gpu03',
    'a-b7',
  ]);
  expect(() => firstNode('[x')).toThrow('cannot be read');
});
