// What dpkg says of a package, in its list of all of them (/var/lib/dpkg/status).

/** Returns what dpkg's list says of a package: `install ok installed`, for example; "" for one that it does not know. */
export function packageStatus(packages: string, name: string): string {
  const at = `\n${packages}`.indexOf(`\nPackage: ${name}\n`);
  if (at < 0) return "";
  const end = packages.indexOf("\n\n", at);
  const entry = packages.slice(at, end < 0 ? undefined : end);
  return /^Status: (.*)$/m.exec(entry)?.[1] ?? "";
}
