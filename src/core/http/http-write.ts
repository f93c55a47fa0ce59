// Writes: requests by a method that is not safe (RFC 9110 §9.2.1), which may change what the origin has.

const safe: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);

export function isWrite({ method }: { readonly method: string }): boolean {
  return !safe.has(method);
}
