// Prints how many tokens the text on stdin has, for each of the tokenizers.

import { text } from 'node:stream/consumers';
import anthropic from '@anthropic-ai/tokenizer';
import tiktoken from 'tiktoken';

const input = await text(process.stdin);
const counts = {
  claude: anthropic.countTokens(input),
  o200k_base: tiktoken.get_encoding('o200k_base').encode(input).length,
};
process.stdout.write(JSON.stringify(counts));
