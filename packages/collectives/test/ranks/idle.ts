// A rank that does next to nothing.
process.exitCode = 0;
