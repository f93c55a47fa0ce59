// `accel-agent check`.

import { join } from "node:path";
import { readArgs, type Command } from "../base/command.ts";
import { closedAuthority, closedSettings } from "../base/closed-settings.ts";
import { refuseSilent } from "../base/control-socket.ts";
import { configOf, placeOptions, placeUsage } from "../base/instance.ts";
import { lostSecret, type LostSecret } from "../base/lost-secret.ts";
import {
  checkedSettings,
  reloadHelp,
  reloadOption,
  unknownKeysHelp,
} from "../base/settings-file.ts";
import { AccelError, type FaultCode } from "../core/faults.ts";
import { examineHost } from "./examining.ts";
import { hasLibrary } from "./picturing.ts";
import { agentFields } from "./settings/fields.ts";
import { readSecret16, secretFileOf } from "./settings/secret.ts";

const deepOption = { deep: { type: "boolean", default: false } } as const;
const deepHelp = "  --deep            examine the whole host, as `accel-agent doctor` does";

export const agentCheckCommand: Command = {
  summary:
    "Checks the settings file and the file of the secret; reports every error with file, line, key and reason.",
  usage: `accel-agent check [options]\n\n${placeUsage}\n${deepHelp}\n${reloadHelp}\n\n${unknownKeysHelp}`,
  async run(context) {
    const { args, out, stop } = context;
    const { values } = readArgs(args, { ...placeOptions, ...reloadOption, ...deepOption });
    const config = configOf(values);
    if (values.deep && values.reload)
      throw new AccelError("USAGE", "--deep and --reload do not go together");
    if (values.deep) return examineHost({ config, json: false }, context);
    const settings = checkedSettings(agentFields, { config, reload: values.reload }, out);
    const { secret16_file: secretFile } = settings;
    // systemd gives it to each command of the unit, and refuses the reload without it, in words of its own.
    refuseLost(lostSecret(secretFile), "SECRET_UNREADABLE");
    // A reload does not read it, and what systemd shows to the agent it does not show to ExecReload.
    if (!values.reload) readSecret16(secretFileOf(secretFile));
    refuseLost(closedSettings(config), "SETTINGS_INVALID");
    if (!values.reload)
      refuseLost(closedAuthority(settings.central_ca_file, config), "FILE_UNUSABLE");
    // Nobody hears of a signal whether it was heeded.
    if (values.reload) await refuseSilent(join(settings.state_dir, "control.sock"), { stop });
    out(`${config}: valid, deployment site ${settings.name16}\n`);
    if (settings["images.encoder"] && !hasLibrary()) out(noLibrary);
  },
};

/** Throws what the unit's next start, or a reload, would fail by. */
function refuseLost(lost: LostSecret | undefined, code: FaultCode): void {
  if (lost !== undefined) throw new AccelError(code, lost.message, { hint: lost.hint });
}

const noLibrary =
  "sharp is not installed: pictures are sent as they are here, also where a devlove has images.optimize. `accel-agent doctor` says how to install it; images.encoder: false in the settings does without it.\n";
