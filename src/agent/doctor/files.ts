// Checks of what the settings name on this host: the secret, the authority of central, the state directory.

import { randomUUID, X509Certificate } from "node:crypto";
import {
  accessSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  type Stats,
} from "node:fs";
import { dirname, join } from "node:path";
import { AccelError, messageOf, systemCode } from "../../core/faults.ts";
import { agentProgram, placeOfConfig, type UnitPlace } from "../../base/instance.ts";
import { lostSecret } from "../../base/lost-secret.ts";
import type { AgentSettings } from "../settings/fields.ts";
import { exposedSecret, readSecret16, rotateHint, secretFileOf } from "../settings/secret.ts";
import { findingsOf, unseen, type Finding, type Host } from "./finding.ts";

export function checkSecret(
  settings: AgentSettings,
  host: Pick<Host, "uid"> & { readonly place: Pick<UnitPlace, "secret" | "unit" | "instance"> },
): Finding {
  const { failed, fault } = findingsOf("secret");
  const lost = lostSecret(settings.secret16_file, host.place);
  if (lost !== undefined) return failed(lost.message, lost.hint);
  const path = secretFileOf(settings.secret16_file, host.place.secret);
  try {
    readSecret16(path);
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    const mayNot = host.uid !== 0 && systemCode(error.cause) === "EACCES";
    return mayNot ? unseen("secret", `this user may not read ${path}`) : fault(error);
  }
  const file = statsIfSeen(path);
  if (file === undefined) return unseen("secret", `this user may not look at ${path}`);
  // Another user than root does not see whose the state directory is, for systemd keeps it in one that root alone may enter.
  const agentUser = statsIfSeen(settings.state_dir)?.uid;
  const users = [0, host.uid, agentUser].filter((uid) => uid !== undefined);
  // systemd reads its source as root, whatever the mode is.
  return judgeSecretFile(path, file, {
    users,
    isLoaded: path !== settings.secret16_file,
  });
}

/** Says who can read the file of the secret. `users` are root and the agent's; `isLoaded`: systemd reads it for the agent. */
export function judgeSecretFile(
  path: string,
  { uid, mode: modeBits }: { readonly uid: number; readonly mode: number },
  { users, isLoaded }: { readonly users: readonly number[]; readonly isLoaded: boolean },
): Finding {
  const { ok, warning } = findingsOf("secret");
  const mode = modeBits & 0o777;
  const shown = `mode ${mode.toString(8).padStart(3, "0")}`;
  const exposed = exposedSecret(path, mode);
  if (exposed !== undefined) return warning(exposed.message, exposed.hint);
  if (!users.includes(uid))
    return warning(
      `${path} belongs to the user with the id ${uid}, who is neither root nor the agent's user, and can read it`,
      `${isLoaded ? `chown root ${path}` : `chown it to the user that runs the agent`}; ${rotateHint}`,
    );
  if ((mode & 0o400) !== 0) return ok(`${path}: readable by its owner alone`);
  return isLoaded
    ? ok(`${path}: readable by root alone, as which systemd reads it`)
    : warning(`${path} can be read by nobody but root (${shown})`, `chmod 600 ${path}`);
}

export function checkAuthority(
  {
    central_ca_file: path,
    central_url: url,
  }: Pick<AgentSettings, "central_ca_file" | "central_url">,
  { uid }: Pick<Host, "uid">,
): Finding {
  const { ok, skipped, failed } = findingsOf("authority");
  if (path === undefined)
    return skipped(
      url.startsWith("http:")
        ? "central is on this host and asked over plain http: there is no certificate to trust"
        : "central is trusted by this system's authorities",
    );
  try {
    const { subject, validTo } = new X509Certificate(readFileSync(path));
    return ok(`${path}: ${subject.replaceAll("\n", ", ")}, valid until ${validTo}`);
  } catch (error) {
    if (uid !== 0 && systemCode(error) === "EACCES")
      return unseen("authority", `this user may not read ${path}`);
    return failed(
      `central_ca_file ${path}: ${messageOf(error)}`,
      "Put central's certificate authority (PEM) there, or let `accel-agent join` write it.",
    );
  }
}

/** Whether the state directory is there and can be written, or can be made. */
export function checkStateDir(
  { state_dir: path }: AgentSettings,
  { uid, config, place }: Pick<Host, "uid" | "config" | "place">,
): Finding {
  const { ok, failed } = findingsOf("state_dir");
  if (isHiddenFrom(path, uid)) return unseen("state_dir", `this user may not look into ${path}`);
  const hint = `Create ${path} and give it to the user that runs the agent. The unit does so by StateDirectory=.`;
  try {
    if (existsSync(path)) {
      if (!statSync(path).isDirectory()) return failed(`${path} is no directory`, hint);
      accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
      assertTakesFiles(path);
      return ok(path);
    }
    const above = existingAbove(path);
    if (!statSync(above).isDirectory()) return failed(`${above} is no directory`, hint);
    const isOfUnit = placeOfConfig(agentProgram, config) !== undefined;
    // The unit makes its own as root, whoever asks.
    if (uid !== 0 && isOfUnit && path !== place.stateDir)
      return unseen("state_dir", `${path} is not there, and this user may not try to make it`);
    if (uid === 0 || !isOfUnit) accessSync(above, constants.W_OK | constants.X_OK);
    return ok(`${path} is made at the first start`);
  } catch (error) {
    const isReadOnly = systemCode(error) === "EROFS";
    return failed(`${path}: ${messageOf(error)}`, isReadOnly ? readOnlyHint : hint);
  }
}

const readOnlyHint =
  "Its disk is read-only, as after an error: `dmesg` says why. An agent that runs serves on, and could not start again: leave it. A file system that met an error is unmounted and checked (fsck) first; then mount it to be written, and start the agent.";

/** A file system that turned read-only after an error may still say that its files can be written. A full one is another finding. */
function assertTakesFiles(directory: string): void {
  const probe = join(directory, `.doctor-${randomUUID()}`);
  try {
    closeSync(openSync(probe, "wx", 0o600));
    unlinkSync(probe);
  } catch (error) {
    if (systemCode(error) !== "ENOSPC") throw error;
  }
}

/** Whether a directory is, or lies, where this user may not look, and root may. */
export function isHiddenFrom(path: string, uid: number): boolean {
  if (uid === 0) return false;
  try {
    readdirSync(path);
    return false;
  } catch (error) {
    return systemCode(error) === "EACCES";
  }
}

/** Returns what is known of a file; undefined where it is not there, or where this user may not look at it. */
export function statsIfSeen(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

/** Returns the nearest directory above that exists. */
export function existingAbove(path: string): string {
  for (let at = path; ; at = dirname(at)) if (existsSync(at) || dirname(at) === at) return at;
}
