// The program of a rank that `roofline train` starts: one job as its argument, lines of progress and how it ended out.
import { type RankJob, trainRank } from './train/train-rank.ts';

await trainRank(JSON.parse(process.argv[2]!) as RankJob);
