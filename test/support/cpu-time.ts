// How long work took of the processor, whoever else had it meanwhile: for bounds on code that could be made to take for ever.

/** Of this process and all of its threads, since `began`, which is another one's result. */
export function cpuMs(began = 0): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 - began;
}
