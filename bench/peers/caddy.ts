// Caddy, where it was built with a cache handler: the standard build has none.

import { execFileSync } from "node:child_process";
import { findVersion, PeerGround, type Peer } from "./peer.ts";

export const caddy: Peer = {
  name: "Caddy",
  find: () => {
    const found = findVersion(["caddy", "version"], /([\d.]+)/);
    if ("missing" in found) return found;
    const modules = execFileSync("caddy", ["list-modules"], { encoding: "utf8" });
    return /^http\.handlers\.cache$/m.test(modules)
      ? found
      : { missing: `${found.version} is built without a cache handler` };
  },
  async start(originPort) {
    const ground = await PeerGround.open(originPort);
    try {
      const config = ground.write("caddyfile", "Caddyfile");
      await ground.run(["caddy", "run", "--adapter", "caddyfile", "--config", config], {
        HOME: ground.dir,
      });
    } catch (error) {
      await ground[Symbol.asyncDispose]();
      throw error;
    }
    const cannot = { cannot: "its clearing depends on how it was built" };
    return {
      url: ground.url,
      ways: [{ name: "Caddy", one: cannot, under: cannot, all: cannot }],
      [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
    };
  },
};
