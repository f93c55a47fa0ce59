// Rows of the specification's rules, states and limits of bots.

import { expect } from "vitest";
import type { Row, Scene } from "./row-scene.ts";

const bad = "/mark-as-bad-bot";
const vip = "/mark-as-vip-bot";

const marked = (scene: Scene, bot: string, isCustom = false): object => ({
  attach_to_bot: bot,
  attach_to_domain: scene.domain,
  ...(isCustom && { is_custom_ip_range: "True" }),
});

async function attaches(
  scene: Scene,
  path: string,
  body: object,
  elements: readonly string[],
): Promise<void> {
  await scene.gives(["POST", `${path}/`, body], 200, { ip_addresses: elements });
}

export const botRows: readonly Row[] = [
  {
    line: "`{ip}` is an IP address string",
    fact: "IPv4 and IPv6; what is none is a 400",
    run: async (scene) => {
      for (const ip of ["192.0.2.7", "2001:db8::7"])
        await scene.gives(["GET", `/is-bad-bot/${ip}/`], 200, { ip_address_or_range: ip });
      await scene.gives(["GET", "/is-bad-bot/192.0.2.256/"], 400);
    },
  },
  {
    line: "`{iprange}` is a CIDR range written as",
    fact: "the underscore is echoed as a slash",
    run: async (scene) =>
      scene.gives(["GET", "/is-bad-bot/2001:db8::_32/"], 200, {
        ip_address_or_range: "2001:db8::/32",
      }),
  },
  {
    line: "A custom range `<start_address>_<n>` is not CIDR",
    fact: "_4 covers 5 addresses; the body selects it",
    run: async (scene) => {
      const five = [0, 1, 2, 3, 4].map((n) => `198.51.100.${n}`);
      await attaches(scene, `${bad}/198.51.100.0_4`, marked(scene, "New", true), five);
    },
  },
  {
    line: "The `{ip}` and `{iprange}` variants share one path shape",
    fact: "the last segment tells them apart",
    run: async (scene) => {
      await attaches(scene, `${bad}/10.0.0.1`, marked(scene, "New"), ["10.0.0.1"]);
      await attaches(scene, `${bad}/10.0.1.0_24`, marked(scene, "New"), [
        "10.0.0.1",
        "10.0.1.0/24",
      ]);
    },
  },
  ...["When no bot with the given name exists", "Bot record | POST mark-as-bad-bot"].map(
    (line): Row => ({
      line,
      fact: "attached to the bot, which is made when there is none of the name",
      run: async (scene) => {
        for (const path of [bad, vip])
          await attaches(scene, `${path}/10.0.0.1`, marked(scene, "New"), ["10.0.0.1"]);
        for (const list of ["bad", "vip"]) {
          const reply = await scene.ask("GET", `/list-${list}-bots/`);
          const names = Object(reply.body).map(({ name }: { name: string }) => name);
          expect(names).toEqual([scene.slot("bot"), "New"]);
        }
      },
    }),
  ),
  {
    line: "Marking a custom range as a bad bot returns the expanded list",
    fact: "addresses for a custom range, the range with a slash for CIDR",
    run: async (scene) => {
      const two = ["10.0.0.255", "10.0.1.0"];
      await attaches(scene, `${bad}/10.0.0.255_1`, marked(scene, "New", true), two);
      await attaches(scene, `${bad}/10.9.0.0_16`, marked(scene, "Other"), ["10.9.0.0/16"]);
    },
  },
  {
    line: "The `ip_addresses` array in a mark response holds",
    fact: "earlier ones are in it",
    run: async (scene) => {
      await attaches(scene, `${bad}/10.0.0.1`, marked(scene, "New"), ["10.0.0.1"]);
      await attaches(scene, `${bad}/10.0.0.2`, marked(scene, "New"), ["10.0.0.1", "10.0.0.2"]);
    },
  },
  {
    line: "A sample response for a custom VIP range shows",
    fact: "a custom VIP range comes back in the form with a slash",
    run: async (scene) =>
      attaches(scene, `${vip}/10.0.0.0_3`, marked(scene, "New", true), ["10.0.0.0/30"]),
  },
  {
    line: "Bot record | POST remove-ip-from-bad-bot-list",
    fact: "detached; the record is returned",
    run: async (scene) => {
      const body = { remove_from_bot: scene.slot("bot"), remove_from_domain: scene.domain };
      for (const set of ["bad", "vip"])
        await scene.gives(["POST", `/remove-ip-from-${set}-bot-list/{range}/`, body], 200, {
          name: scene.slot("bot"),
          ip_addresses: [],
        });
    },
  },
  {
    line: "256 per request for the mask of the range",
    fact: "VIP: custom ranges to 256, CIDR from /24; 400 beyond",
    run: async (scene) => {
      await scene.gives(["POST", `${vip}/10.0.0.0_256/`, marked(scene, "New", true)], 200);
      await scene.gives(["POST", `${vip}/10.0.0.0_257/`, marked(scene, "New", true)], 400);
      await scene.gives(["POST", `${vip}/10.1.0.0_24/`, marked(scene, "New")], 200);
      await scene.gives(["POST", `${vip}/10.1.0.0_23/`, marked(scene, "New")], 400);
    },
  },
];
