// Varnish in memory. No lifetime, grace or keep of its own, as the cache tests' own containers configure it.

import { command, findVersion, PeerGround, purging, type Command, type Peer } from "./peer.ts";

export const varnish: Peer = {
  name: "Varnish",
  find: () => findVersion(["varnishd", "-V"], /varnish-([\d.]+)/),
  async start(originPort) {
    const ground = await PeerGround.open(originPort);
    try {
      const vcl = ground.write("varnish.vcl", "varnish.vcl");
      const memory = "-s malloc,1G -p default_ttl=0 -p default_grace=0 -p default_keep=3600";
      const where = ["-n", ground.makeDir("work"), "-a", `127.0.0.1:${ground.port}`, "-T", "none"];
      await ground.run(["varnishd", "-F", "-j", "none", "-f", vcl, ...where, ...memory.split(" ")]);
    } catch (error) {
      await ground[Symbol.asyncDispose]();
      throw error;
    }
    const ban = (pattern: (target: string) => string): Command => ({
      by: "ban",
      run: (target) => command(`${ground.url}/`, "BAN", { "x-ban": pattern(target) }),
    });
    return {
      url: ground.url,
      ways: [
        {
          name: "Varnish ban",
          one: ban((target) => `^${escape(target)}$`),
          under: ban((target) => `^${escape(target)}`),
          all: ban(() => "."),
        },
        {
          name: "Varnish purge",
          ...purging((target) => command(`${ground.url}${target}`, "PURGE")),
          all: { cannot: "a purge is of one URL" },
        },
      ],
      [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
    };
  },
};

function escape(text: string): string {
  return text.replaceAll(/[.?+*()[\]{}^$|\\]/g, String.raw`\$&`);
}
