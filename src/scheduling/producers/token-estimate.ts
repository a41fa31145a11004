import { z } from 'zod';

// llm-d-router's parameters of the estimate of images and videos, accepted so that its configurations load. The core
// counts 225 tokens for an image, and other parts by the bytes of their JSON (assembly/request/messages.ts).

const whole = (meaning: string) => z.int().optional().describe(meaning);
const number = (meaning: string) => z.number().optional().describe(meaning);
const mode = <const Name extends readonly [string, ...string[]]>(names: Name, meaning: string) =>
  z.enum(names).optional().describe(meaning);
const group = <Shape extends z.ZodRawShape>(shape: Shape, meaning: string) =>
  z.strictObject(shape).optional().describe(meaning);

const size = () => ({ width: whole('Pixels.'), height: whole('Pixels.') });
const perPixels = () => ({ factor: whole('Pixels that stand for one token.') });

const image = () =>
  group(
    {
      mode: mode(['dynamic', 'static'], 'By the size of the image, or a number.'),
      defaultResolution: group(size(), 'Size of an image that does not tell it.'),
      dynamic: group(perPixels(), 'Of the mode `dynamic`.'),
      static: group({ staticToken: whole('Tokens of every image.') }, 'Of the mode `static`.'),
    },
    'How many tokens an image has. Accepted, without effect: it has 225.',
  );

const video = () =>
  group(
    {
      defaultDuration: number('Seconds of a video that does not tell them.'),
      defaultResolution: group(size(), 'Size of a video that does not tell it.'),
      maxVideoTokens: whole('Most tokens of a video.'),
      tokensPerFrame: group(
        {
          mode: mode(['dynamic', 'static'], 'By the size of the frame, or a number.'),
          dynamic: group(perPixels(), 'Of the mode `dynamic`.'),
          static: group({ numTokensPerFrame: whole('Tokens of every frame.') }, 'Of the mode `static`.'),
        },
        'How many tokens a frame has.',
      ),
      frames: group(
        {
          mode: mode(['sampled', 'strided'], 'So many a second, or every so-manieth.'),
          minFrames: whole('Fewest frames.'),
          maxFrames: whole('Most frames.'),
          sampled: group(
            {
              sampleFPS: number('Frames of a second.'),
              temporalPatchSize: whole('Frames that are taken together.'),
            },
            'Of the mode `sampled`.',
          ),
          strided: group(
            {
              defaultSourceFPS: number('Frames a second of a video that does not tell them.'),
              frameStride: whole('Which frames count: every so-manieth.'),
            },
            'Of the mode `strided`.',
          ),
        },
        'How many frames count.',
      ),
    },
    'How many tokens a video has. Accepted, without effect: it has those of its JSON.',
  );

/** Parameters of the estimate. */
export const estimate = () =>
  z
    .strictObject({ image: image(), video: video() })
    .optional()
    .describe(
      'Count four bytes of prompt as one token: no server is asked. What happens too when nothing is configured.',
    );
