// The program of a rank that a cell of `roofline ddp` starts: one job as its argument, lines of progress and results out.
import { runRank, type RankJob } from './benchmarks/ddp/run-rank.ts';

await runRank(JSON.parse(process.argv[2]!) as RankJob);
