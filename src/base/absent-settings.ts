// What is known of a settings file of the agent that is not where it should be. A host that had joined is to have its file back, and not to join again: the state directory, which the
// unit makes at its first start, is what everybody sees of that.

import { lstatSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { systemCode } from "../core/faults.ts";
import { nearest } from "../core/nearest.ts";
import { closedWay } from "./closed-settings.ts";
import { agentProgram, placeOf, placeOfConfig, type UnitPlace } from "./instance.ts";

/** The copy of the settings file that the agent keeps in its state directory. */
export const lastSettingsName = "settings.yaml";

export type Sight = "there" | "absent" | "hidden";

/** Looks whether a file is there; hidden: this user may not look. */
export function sightOf(path: string, look: (path: string) => unknown = statSync): Sight {
  try {
    look(path);
    return "there";
  } catch (error) {
    return ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "") ? "absent" : "hidden";
  }
}

export type AbsentSettings = {
  /** `gone`: the host had joined. `unseen`: this user does not see whether it had, or whether the file is there. */
  readonly kind: "gone" | "unseen" | "unjoined";
  readonly message: string;
  readonly hint: string;
};

/** Says what is known of a settings file of the agent's unit that is not there, or not to be seen. */
export function absentSettings(path: string, place: UnitPlace): AbsentSettings {
  const { stateDir, secret } = place;
  const gone = (message: string, hint: string): AbsentSettings => ({
    kind: "gone",
    message: `the settings file ${path} is gone${message}`,
    hint,
  });
  if (sightOf(path) === "hidden") {
    const closed = closedWay(path);
    return unseen(
      `this user does not see whether there is a settings file ${path}`,
      closed && `${closed}. Until then give the command as root.`,
    );
  }
  const copy = join(stateDir, lastSettingsName);
  const sight = sightOf(copy);
  if (sight === "there") return gone("", putBackSettings(copy, path, place.unit));
  const joining = `Or join again, with another code: \`${joinCommandOf(path, place)}\`.`;
  if (sight === "hidden")
    return sightOf(stateDir, lstatSync) === "there"
      ? gone(
          `: an agent has run here, with the state directory ${stateDir}`,
          `As root: \`accel-agent check${optionOf(path, place)}\` says how to put it back.`,
        )
      : unseen(`there is no settings file ${path}, and this user does not see whether one is gone`);
  if (hasFiles(stateDir))
    return gone(
      `: an agent has run here, with the state directory ${stateDir}, which has no copy of it`,
      `Put it back from a backup; if it named another state_dir, ${lastSettingsName} there is what the agent read last. ${joining}`,
    );
  if (sightOf(secret.source) === "there")
    return gone(
      `, or was never written whole: the secret is there (${secret.source})`,
      `If this host had joined, put the file back from a backup. ${joining}`,
    );
  return {
    kind: "unjoined",
    message: `there is no settings file ${path}`,
    hint: besideOthers(path, place) ?? `${unjoinedText(path, place)}, and writes this file.`,
  };
}

/** Says which agents this host has, one of which may have been meant; undefined where it has none. */
function besideOthers(path: string, place: UnitPlace): string | undefined {
  const { names, agents } = agentsIn(
    dirname(place.instance === undefined ? path : dirname(path)),
    basename(path),
  );
  const meant = place.instance === undefined ? undefined : nearest(place.instance, names);
  const joining = `Another one joins by \`${joinCommandOf(path, place)}\`, which writes this file.`;
  if (meant !== undefined) return `Did you mean --instance ${meant}? ${joining}`;
  return agents.length === 0 ? undefined : `This host has ${agents.join(", ")}. ${joining}`;
}

/** Returns the names that `--instance` takes here, and each agent of the host with how a command is told that it is meant. */
export function agentsIn(
  directory: string,
  file = agentProgram.file,
): { readonly names: readonly string[]; readonly agents: readonly string[] } {
  const names = namesIn(directory).filter(
    (name) => sightOf(join(directory, name, file)) === "there",
  );
  const isPlain = sightOf(join(directory, file)) === "there";
  const agents = [
    ...(isPlain ? [`${unitName(undefined)} (without --instance)`] : []),
    ...names.map((name) => `${unitName(name)} (--instance ${name})`),
  ];
  return { names, agents };
}

const unitName = (instance: string | undefined): string =>
  placeOf(agentProgram, instance).unit.replace(/\.service$/, "");

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory).toSorted();
  } catch {
    return [];
  }
}

const unseenHint =
  "It is gone, or this host has not joined a deployment site yet: give the command as root to find out.";
const unseen = (message: string, hint = unseenHint): AbsentSettings => ({
  kind: "unseen",
  message,
  hint,
});

/** Says how a settings file comes back from the copy of it. Starting a unit that runs changes nothing. */
export function putBackSettings(copy: string, path: string, unit: string | undefined): string {
  const start = unit === undefined ? "" : `; systemctl start ${unit.replace(/\.service$/, "")}`;
  return `Put back what the agent read last, as root: install -D -o root -g root -m 644 ${copy} ${path}${start}`;
}

/** Says that a host has not joined, as the beginning of a sentence on what `join` does. */
export function unjoinedText(
  path: string,
  place: Pick<UnitPlace, "instance"> | undefined = placeOfConfig(agentProgram, path),
): string {
  return `This host has not joined a deployment site yet: \`${joinCommandOf(path, place)}\` does that`;
}

const joinCommandOf = (path: string, place: Pick<UnitPlace, "instance"> | undefined): string =>
  `accel-agent join --central URL${optionOf(path, place)}`;

/** Writes the option that names a settings file; the plain unit's needs none. */
function optionOf(path: string, place: Pick<UnitPlace, "instance"> | undefined): string {
  if (place === undefined) return ` --config ${path}`;
  return place.instance === undefined ? "" : ` --instance ${place.instance}`;
}

const hasFiles = (directory: string): boolean => namesIn(directory).length > 0;
