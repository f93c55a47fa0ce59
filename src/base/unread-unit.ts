// What is told of a unit whose file systemd has not read, for it is masked, gone or not valid: by the doctor, and by commands that look at the unit alone. Pure.

/** The properties of a unit as systemctl(1) shows them. */
type Shown = ReadonlyMap<string, string>;

/** Says why systemd tells nothing of a unit's file; undefined where it has read it. What it shows then are its own defaults. */
export function unreadText(of: Shown, name: string): string | undefined {
  const state = of.get("LoadState");
  switch (state) {
    case "loaded":
      return undefined;
    case "masked":
      return `${name} is masked`;
    case "not-found":
      return `there is no unit ${name} on this host`;
    default:
      return `systemd cannot read the file of ${name} (${state})`;
  }
}

/** Says how systemd comes to read the file of such a unit. */
export function unreadRemedy(of: Shown, name: string): string {
  switch (of.get("LoadState")) {
    case "masked":
      return `systemctl unmask ${name}, then systemctl start ${name}.`;
    case "not-found":
      return "Install the package accel-agent again.";
    default:
      return `systemctl status ${name} says why.`;
  }
}

/** Says what becomes of a unit that runs, and whose file systemd has not read; undefined where it does not run, or its file was read. */
export function unreadWhileUp(
  of: Shown,
  name: string,
): { readonly text: string; readonly hint: string; readonly isEnding: boolean } | undefined {
  const unread = unreadText(of, name);
  if (unread === undefined || !upStates.has(of.get("ActiveState") ?? "")) return undefined;
  // It takes no more words of the unit, as NotifyAccess= of an empty file has it, and goes on to watch it.
  const isEnding = of.get("LoadState") === "masked";
  const text = isEnding
    ? "it runs, and systemd, which does not hear it any more, ends it within a minute and starts none"
    : "it runs, and could not start again";
  return { text: `${unread}: ${text}`, hint: unreadRemedy(of, name), isEnding };
}

const upStates: ReadonlySet<string> = new Set(["active", "reloading", "refreshing"]);
