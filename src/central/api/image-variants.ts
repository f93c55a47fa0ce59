// `/analytics/{domain}/images/`: what became of a domain's images, by day.

import { gives } from "../../wire/customer/operation.ts";
import { imageVariantsShape, type ImageVariantsDay } from "../../wire/customer/image-variants.ts";
import { imageDaysOf } from "../store/content/image-days.ts";
import { invalid, ok, type Answer } from "./http/answer.ts";
import { forUsers, type Endpoint } from "./http/endpoint.ts";
import { hostNamed, isProblem } from "./http/path-values.ts";

export function imageVariantEndpoints(): readonly Endpoint[] {
  return [
    forUsers({
      method: "GET",
      path: "/analytics/:domain/images/",
      id: "getImageVariants",
      needs: { role: "read", scope: "domain" },
      summary: "Read how many variants of a domain's images were made and held back, by day",
      gives: gives(imageVariantsShape),
      refuses: [400, 404],
      handle: async ({ actor, param, read }) =>
        read(async (work): Promise<Answer> => {
          const host = await hostNamed(work, actor, param("domain"));
          if (isProblem(host)) return host;
          if (host.main !== host.host)
            return invalid([
              { path: "domain", message: `the images of a sub-domain count under ${host.main}` },
            ]);
          const today = work.at.slice(0, 10);
          const days = (await imageDaysOf(work, host.domainId)).map(
            ({ day, made, blocked }): ImageVariantsDay => ({ day, made, held_back: blocked }),
          );
          const none: ImageVariantsDay = { day: today, made: 0, held_back: 0 };
          return ok({
            domain: host.main,
            today: days.find(({ day }) => day === today) ?? none,
            days,
          });
        }),
    }),
  ];
}
