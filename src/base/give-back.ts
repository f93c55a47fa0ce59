// Memory outside the heap that is given back as soon as nobody needs it. The garbage collector counts such memory, and looks through the whole heap of a
// thread when there is too much of it: where bytes come by the megabyte and every heap holds tens, that costs more than the bytes' own work.

/**
 * Gives the memory back, if it is these bytes' alone; from a pool it stays. Whoever still holds them has none from then on, so nobody may: no call into the system, no
 * compression that is still under way.
 */
export function giveBack(bytes: Uint8Array): void {
  const { buffer, byteLength } = bytes;
  if (byteLength > 0 && buffer instanceof ArrayBuffer && buffer.byteLength === byteLength)
    buffer.transfer(0);
}
