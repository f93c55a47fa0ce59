// nginx with the cache_purge module: exact keys only.

import { existsSync } from "node:fs";
import { command, findVersion, PeerGround, purging, type Peer } from "./peer.ts";

const module = "/usr/lib/nginx/modules/ngx_http_cache_purge_module.so";

export const nginx: Peer = {
  name: "nginx",
  find: () =>
    existsSync(module)
      ? findVersion(["nginx", "-v"], /nginx\/([\d.]+)/)
      : { missing: "not installed, or without its cache_purge module" },
  async start(originPort) {
    const ground = await PeerGround.open(originPort);
    try {
      const config = ground.write("nginx.conf", "nginx.conf", { module });
      await ground.run(["nginx", "-p", ground.dir, "-c", config]);
    } catch (error) {
      await ground[Symbol.asyncDispose]();
      throw error;
    }
    return {
      url: ground.url,
      ways: [
        {
          name: "nginx cache_purge",
          ...purging((target) => command(`${ground.url}/purge${target}`, "GET")),
          all: { cannot: "no command: the module knows exact keys only" },
        },
      ],
      [Symbol.asyncDispose]: () => ground[Symbol.asyncDispose](),
    };
  },
};
