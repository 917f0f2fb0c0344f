/** What an audio worklet finds around it; the libraries of the DOM leave it out. */
declare abstract class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(
  name: string,
  make: new (options: { processorOptions: never }) => AudioWorkletProcessor & {
    process(inputs: Float32Array[][], outputs: Float32Array[][]): boolean;
  },
): void;
declare const sampleRate: number;
declare const currentFrame: number;
